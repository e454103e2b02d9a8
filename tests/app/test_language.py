"""German is complete, right in form, and in force when it is asked for.

What is missing is added by `python -m tests.i18n`, which also says how much is untranslated.
"""

import ast
import json
import re
import string
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale
from PySide6.QtWidgets import QApplication

from app import resources
from app.viewmodels import sampling, words
from engine.api import Sampling
from engine.errors import Reason
from tests import i18n, reasons

TOP = Path(__file__).parents[2]
SOURCES = sorted((TOP / "app").rglob("*.py"))
REASONS = json.loads((i18n.FOLDER / "reasons_de.json").read_text(encoding="utf-8"))
VALUES = "values"
REFRESH = "refresh with: python -m tests.i18n"


@pytest.fixture
def speak(qapp: QApplication):
    yield lambda language: resources.speak(qapp, language)
    resources.speak(qapp, "en")


def messages(ts: Path) -> dict[tuple[str, str], str]:
    """By context and English text; what is unfinished is empty."""
    found = {}
    for context in ET.parse(ts).getroot().iter("context"):
        for message in context.iter("message"):
            said = message.find("translation")
            text = "" if said.get("type") == "unfinished" else said.text or ""
            found[context.findtext("name"), message.findtext("source")] = text
    return found


GERMAN = messages(i18n.TS)


def fields(template: str) -> list[str]:
    parts = string.Formatter().parse(template)
    return sorted(f"{name}:{spec}" for _, name, spec, _ in parts if name is not None)


def test_no_text_of_the_app_is_missing_unfinished_or_gone(tmp_path):
    if i18n.tool("lupdate") is None:
        pytest.skip("lupdate is not installed")
    fresh = tmp_path / i18n.TS.name
    fresh.write_bytes(i18n.TS.read_bytes())
    i18n.update(fresh)
    wanted = messages(fresh)
    assert len(wanted) > 400
    assert set(wanted) - set(GERMAN) == set(), REFRESH
    assert set(GERMAN) - set(wanted) == set(), REFRESH
    assert [key for key, text in GERMAN.items() if not text] == []


def test_what_the_program_reads_is_made_of_what_is_written(tmp_path):
    if i18n.tool("lrelease") is None:
        pytest.skip("lrelease is not installed")
    i18n.compile_into(i18n.TS, tmp_path / "fresh.qm")
    assert (tmp_path / "fresh.qm").read_bytes() == i18n.QM.read_bytes(), REFRESH


def test_everything_said_by_code_has_german_and_nothing_else_has():
    said = reasons.said()
    # What a row says of itself is translated already.
    unread = {(found.place, found.code) for found in said if found.template is None}
    assert unread == {("app/viewmodels/rows.py", "repeats")}
    wanted = {(found.code, found.template) for found in said if found.template is not None}
    assert len(wanted) > 150
    there = {
        (code, template)
        for code, templates in REASONS.items()
        if code != VALUES
        for template in templates
    }
    assert wanted - there == set()
    assert there - wanted == set()


def test_why_a_file_of_chats_cannot_be_read_is_said_in_german():
    source = (TOP / "app/chats/exchange.py").read_text(encoding="utf-8")
    details = set(re.findall(r'_wrong\("([^"]+)"\)', source))
    assert len(details) > 8
    assert details - set(REASONS[VALUES]) == set()


@pytest.mark.parametrize(
    ("english", "german"),
    [(english, text) for (_, english), text in GERMAN.items()]
    + [(e, g) for code, texts in REASONS.items() if code != VALUES for e, g in texts.items()],
)
def test_a_translation_has_the_same_fields_and_good_form(english, german):
    assert fields(english) == fields(german)
    assert english.count("%n") == german.count("%n")
    assert english.endswith((".", ":", "?", "…")) == german.endswith((".", ":", "?", "…"))
    assert german == german.strip()
    assert not re.search(r"[“”\"'](?=\w)|\w…|\d%|\}%| Sie | Ihr|!|\bß", german), german
    assert german.count("„") == german.count("“")


def calls(tree: ast.Module) -> list[ast.Call]:
    """Calls that translate; `translate` with one argument is that of a text."""
    least = {"tr": 1, "_tr": 1, "translate": 2}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(getattr(c.func, "attr", getattr(c.func, "id", "")), c) for c in found]
    return [call for name, call in named if name in least and len(call.args) >= least[name]]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(TOP)))
def test_what_is_translated_is_a_plain_text(path):
    for call in calls(ast.parse(path.read_text(encoding="utf-8"))):
        for argument in call.args:
            put_together = isinstance(argument, ast.JoinedStr | ast.BinOp | ast.Call)
            assert not put_together, f"{path}:{call.lineno}"


def test_every_text_is_looked_up_where_it_was_found():
    """`widget.tr()` outside a class is looked up in the widget's class, and lupdate cannot know
    which that is."""
    classes, named = set(), {"settings"}
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        named.update(re.findall(r'translate\(\s*"(\w+)"', source))
        classes.update(n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef))
    assert {context for context, _ in GERMAN} - classes - named == set()


def test_german_is_spoken_and_no_more(speak, qtbot):
    speak("de")
    assert resources.language_now() == "de"
    assert QCoreApplication.translate("actions", "Quit") == "Beenden"
    assert QLocale().language() is QLocale.Language.German
    speak("en")
    assert resources.language_now() == "en"
    assert QCoreApplication.translate("actions", "Quit") == "Quit"
    assert QLocale().language() is QLocale.Language.English


def test_qts_own_words_are_german_too(speak):
    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    if not (folder / "qtbase_de.qm").is_file():
        pytest.skip("Qt came without its translations")
    speak("de")
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Abbrechen"


@pytest.mark.parametrize(
    ("languages", "spoken"),
    [
        (["de-AT", "de", "en-US"], "de"),
        (["fr-FR", "de-DE"], "de"),
        (["en-GB", "de"], "en"),
        (["fr"], "en"),
        ([], "en"),
    ],
)
def test_the_systems_first_language_that_there_is_wins(speak, monkeypatch, languages, spoken):
    class System:
        def uiLanguages(self):
            return languages

    monkeypatch.setattr(QLocale, "system", System)
    speak("system")
    assert resources.language_now() == spoken


def test_the_engine_is_translated_by_code_with_its_values(speak):
    fits = Reason("fits", "Fits, {gib} GiB to spare", {"gib": 1.4})
    damaged = Reason(
        "gguf_damaged", "{file} is damaged at {part}.", {"file": "a.gguf", "part": "the header"}
    )
    assert resources.translate(fits) == fits.text
    speak("de")
    assert resources.translate(fits) == "Passt, 1,4 GiB bleiben frei"
    assert resources.translate(damaged) == "a.gguf ist beschädigt, und zwar hier: der Kopf."


def test_counts_are_grouped_and_ids_are_not(speak):
    full = Reason("context_reached", _english("context_reached"), {"context": 8192})
    token = Reason("first_difference", _english("first_difference"),
                   {"token": 15000, "target": "a", "draft": "b"})  # fmt: skip
    assert "8,192" in resources.translate(full)
    assert "15000" in resources.translate(token)
    speak("de")
    assert "8.192" in resources.translate(full)
    assert "15000" in resources.translate(token)


def _english(code: str) -> str:
    (template,) = REASONS[code]
    return template


def test_what_has_no_german_is_said_in_english(speak):
    speak("de")
    for reason in (
        Reason("fits", "It fitted once, {gib} GiB", {"gib": 1.5}),
        Reason("unheard_of", "A new sentence."),
    ):
        assert resources.translate(reason) == reason.text


def test_every_sentence_can_be_said(speak):
    """With values of a kind that the format takes."""
    speak("de")
    for code, templates in REASONS.items():
        for template in templates if code != VALUES else ():
            names = [field.partition(":") for field in fields(template)]
            values = {name: 1.5 if spec else "x" for name, _, spec in names}
            assert "{" not in resources.translate(Reason(code, template, values))


def test_figures_have_the_signs_of_the_language(speak):
    assert resources.figures("8,192") == "8,192"
    speak("de")
    assert resources.figures("8,192") == "8.192"
    assert resources.figures("3.1 GB") == "3,1 GB"


def test_places_and_settings_are_written_and_read_as_the_language_does(speak):
    temperature = sampling.settings()[0]
    assert [words.ordinal(n) for n in (1, 2, 3, 11)] == ["1st", "2nd", "3rd", "11th"]
    assert temperature.value(Sampling(temperature=0.2)) == "0.2"
    speak("de")
    assert [words.ordinal(n) for n in (1, 11)] == ["1.", "11."]
    assert temperature.value(Sampling(temperature=0.2)) == "0,2"
    assert temperature.default(Sampling(temperature=0.7)) == "0,7"
    assert [temperature.read(text) for text in ("0,2", "0.2")] == [0.2, 0.2]
    assert temperature.stepped("0,2", 1, Sampling()) == "0,3"
    assert sampling.in_words(Sampling(temperature=0.2)).endswith(" 0,2")
    with pytest.raises(ValueError, match="0,2x"):
        temperature.read("0,2x")
