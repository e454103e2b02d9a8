"""Chat templates are rendered, refused or stopped; they can do nothing else."""

import itertools
import re
import time

import pytest

from engine.errors import Cancelled, TemplateError
from engine.template import Template

MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def render():
    templates = []

    def call(source, *, seconds=5.0, messages=MESSAGES, **values):
        template = Template(source, seconds=seconds)
        templates.append(template)
        return template.render(messages, **values)

    yield call
    for template in templates:
        template.close()


def test_a_template_reads_messages_and_special_tokens(render):
    source = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] }}{% endfor %}"
    assert render(source, bos_token="<s>") == "<s>[user] Hi"


def test_blocks_are_trimmed_as_chat_templates_expect(render):
    source = "{% for m in messages %}\n    {% if true %}\nx\n    {% endif %}\n{% endfor %}\n"
    assert render(source) == "x\n"


def test_it_ends_ready_for_an_answer(render):
    assert render("{% if add_generation_prompt %}go{% endif %}") == "go"


def test_the_mark_for_training_is_only_its_content(render):
    source = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert render(source) == "Hi"


def test_json_is_written_as_asked(render):
    assert render("{{ messages[0] | tojson(separators=(',', ':')) }}") == (
        '{"role":"user","content":"Hi"}'
    )


def test_the_date_can_be_written(render):
    """TPL-1."""
    assert re.fullmatch(
        r"\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d", render("{{ strftime_now('%d %b %Y %H:%M') }}")
    )


def test_what_a_template_raises_is_told(render):
    """TPL-2."""
    with pytest.raises(TemplateError, match="system role not supported") as failed:
        render("{{ raise_exception('system role not supported') }}")
    assert failed.value.code == "template_refused"


@pytest.mark.parametrize(
    "source",
    ["{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{% if %}", "{{ nothing.x }}"],
)
def test_code_and_mistakes_are_refused(render, source):
    with pytest.raises(TemplateError) as failed:
        render(source)
    assert failed.value.code == "template_refused"


ENDLESS = (
    "{% for i in range(99999) %}{% for j in range(99999) %}"
    "{% set x = i * j %}{% endfor %}{% endfor %}"
)


def test_one_that_never_ends_is_stopped(render):
    began = time.monotonic()
    with pytest.raises(TemplateError) as failed:
        render(ENDLESS, seconds=0.5)
    assert failed.value.code == "template_slow"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(9999) %}{% for j in range(9999) %}xxxxxxxxxx{% endfor %}{% endfor %}",
        "{{ 'x' * 5000000 }}",
        "{{ 'x'.ljust(5000000) }}",
    ],
)
def test_one_that_writes_without_end_is_stopped(render, source):
    with pytest.raises(TemplateError) as failed:
        render(source)
    assert failed.value.code == "template_long"


@pytest.mark.parametrize("source", ["{{ 'x' * 10**11 }}", "{{ 'x'.ljust(10**11)|length }}"])
def test_one_that_wants_all_memory_is_stopped(render, source):
    with pytest.raises(TemplateError):
        render(source)


def test_one_that_never_ends_heeds_a_stop():
    template = Template("{% if messages %}" + ENDLESS + "{% endif %}ok", seconds=20.0)
    assert template.render([]) == "ok"
    looks = itertools.count()
    template.stopped = lambda: next(looks) > 1
    with pytest.raises(Cancelled):
        template.render(MESSAGES)
    template.stopped = lambda: False
    assert template.render([]) == "ok"
    template.close()


def test_after_one_was_stopped_the_next_is_rendered():
    template = Template("{% if messages[0].content == 'loop' %}" + ENDLESS + "{% endif %}ok")
    template._seconds = 0.5
    with pytest.raises(TemplateError):
        template.render([{"role": "user", "content": "loop"}])
    template._seconds = 5.0
    assert template.render(MESSAGES) == "ok"
    template.close()
