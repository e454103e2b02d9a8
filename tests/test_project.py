"""The project itself: what is in the wheel, at the top level, and in the README."""

import email
import email.policy
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from app import cli
from app.instance import Instance

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")


def tracked():
    """Files git knows; the checkout may hold build outputs beside them."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [Path(line) for line in listed.stdout.splitlines()]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The files git knows, elsewhere."""
    folder = tmp_path_factory.mktemp("built") / "source"
    for path in tracked():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / path, folder / path)
    return folder


def build(kind, source):
    """A wheel or an sdist of the folder `source`, beside it."""
    made = source.with_name(f"{kind} of {source.name}")
    call = f"import setuptools.build_meta as b; b.build_{kind}({str(made)!r})"
    subprocess.run([sys.executable, "-c", call], cwd=source, check=True, capture_output=True)
    return next(made.iterdir())


@pytest.fixture(scope="module")
def wheel(source):
    return build("wheel", source)


def contents(wheel):
    """What a wheel holds, by name; its record of hashes says nothing more."""
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist() if "RECORD" not in name}


def test_the_wheel_holds_the_three_packages_and_nothing_else(source, wheel):
    names = contents(wheel)
    tops = {name.partition("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"app", "engine", "resources"}
    assert len(tops) == 4
    shipped = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    packages = ("app", "engine", "resources")
    assert shipped == {str(path) for path in tracked() if path.parts[0] in packages}


def test_the_source_archive_has_every_file_and_makes_the_same_wheel(source, wheel, tmp_path):
    archive = build("sdist", source)
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    (unpacked,) = tmp_path.glob("slipstream-*")
    files = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    made = {Path("PKG-INFO"), Path("setup.cfg")}
    assert {path for path in files - made if "egg-info" not in str(path)} == set(tracked())
    assert contents(build("wheel", unpacked)) == contents(wheel)


def test_the_wheel_says_what_it_is(wheel):
    (told,) = (data for name, data in contents(wheel).items() if name.endswith("METADATA"))
    told = email.message_from_bytes(told, policy=email.policy.default)
    for name in ("Summary", "Author", "Keywords", "Classifier"):
        assert told[name], name
    assert told["Requires-Python"] == ">=3.11"
    assert told["License-Expression"] == "Apache-2.0 AND ISC AND MIT"
    assert told.get_all("License-File") == ["LICENSE", "resources/icons/LICENSE"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_payload().strip() == README.strip()


def test_the_version_is_told_where_no_other_package_is():
    call = f"import sys; sys.path.insert(0, {str(TOP)!r}); from app.__main__ import main; "
    call += "main(['--version'])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", call], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "slipstream"), done.stderr


def test_the_top_level_is_as_agreed():
    expected = {
        *("app", "engine", "resources", "tests", "packaging", "docs", ".ci"),
        *("pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md", ".gitignore"),
        "MANIFEST.in",
    }
    assert {path.parts[0] for path in tracked()} == expected


def test_tests_and_packaging_are_no_packages():
    """An importable `packaging` at the top would shadow the real one and break transformers."""
    assert not list((TOP / "packaging").rglob("__init__.py"))
    assert not list((TOP / "tests").rglob("__init__.py"))


def test_no_file_names_a_machine_of_ours():
    ours = re.compile(r"/work/|\.\./shared|/opt/")
    text = {".py", ".md", ".toml", ".json", ".qss", ""}
    here = Path(__file__).name
    for path in tracked():
        if path.suffix in text and path.name != here:
            assert not ours.search((TOP / path).read_text(encoding="utf-8")), path


def test_the_readmes_tree_names_files_that_exist():
    tree = re.search(r"## Where things are\n\n```\n(.*?)```", README, re.DOTALL)[1]
    folder = Path()
    for line in tree.splitlines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else Path(name)
        path = folder / name if line.startswith(" ") else folder
        assert (TOP / path).exists(), path


def commands(language="sh"):
    """The lines of the README's shell blocks."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_shell_line_is_sound_and_every_slipstream_command_known():
    lines = commands() + re.findall(r"\| `(.*?)` \|", README)
    assert len(lines) >= 10
    for line in lines:
        subprocess.run(["bash", "-n", "-c", line], check=True)
    for line in lines:
        for part in line.split("&&"):
            words = shlex.split(part)
            if words[0].endswith("slipstream"):
                cli.parse(words[1:])


def test_the_readme_has_the_two_commands_that_ci_runs():
    marks = re.findall(r"<!-- ci: (\w+) -->\n```sh\n(.*)\n```", README)
    assert [name for name, _ in marks] == ["start", "test"]


def test_every_picture_and_page_the_readme_shows_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (TOP / target).is_file(), target


def opens_window(line):
    """Whether it names a model or a chat for the window."""
    return line.startswith("slipstream ") and bool(cli.parse(shlex.split(line)[1:]).open)


@pytest.mark.parametrize("line", list(filter(opens_window, commands())))
def test_the_readmes_commands_for_the_window_reach_the_one_that_is_open(line, tmp_path, qtbot):
    """In a process of its own, which ends once the open one has heard it."""
    (word,) = shlex.split(line)[1:]
    word = word.replace("~", str(tmp_path))
    if "/" in word:
        Path(word).parent.mkdir(parents=True)
        Path(word).write_bytes(b"GGUF")
    open_one, heard = Instance(tmp_path / "home" / "data"), []
    open_one.called.connect(heard.append)
    assert open_one.claim()
    environment = os.environ | {"SLIPSTREAM_HOME": str(tmp_path / "home"), "PYTHONPATH": str(TOP)}
    started = subprocess.Popen([sys.executable, "-m", "app", word], env=environment)
    qtbot.waitUntil(lambda: started.poll() is not None, timeout=60_000)
    open_one.close()
    assert (started.returncode, heard) == (0, [word])


@pytest.mark.real_model
@pytest.mark.parametrize(
    "line", [x for x in commands() if x.startswith("slipstream ") and not opens_window(x)]
)
def test_the_readmes_terminal_commands_work(line, tmp_path):
    """As written, with the starter model in the library and a chat."""
    from app.chats.conversation import ChatRecord
    from app.chats.store import Store
    from engine.library.starter import STARTER

    model = Path(os.environ.get("SLIPSTREAM_TEST_MODELS", "none")) / STARTER.file
    if not model.is_file():
        pytest.skip("SLIPSTREAM_TEST_MODELS does not hold the starter")
    home = tmp_path / "home"
    (home / "models").mkdir(parents=True)
    (home / "models" / STARTER.file).symlink_to(model)
    (home / "data").mkdir()
    store = Store(home / "data" / "chats.db")
    store.put_chat(ChatRecord("chat", "Rivers"))
    store.close()
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Hi"}\n{"prompt": "Name a river."}\n')
    environment = os.environ | {"SLIPSTREAM_HOME": str(home), "PYTHONPATH": str(TOP)}
    if line.startswith("slipstream get "):
        del environment["HF_HUB_OFFLINE"]  # offline, nothing is got
    done = subprocess.run(
        [sys.executable, "-m", "app", *shlex.split(line)[1:]],
        cwd=tmp_path,
        input="Say hi.\n",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
