"""Packages made of a stand-in for the bundle: what is in them, and that they come and go."""

import argparse
import configparser
import gzip
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app import cli
from app.start import APP_ID

TOP = Path(__file__).parents[1]
PACKAGING = TOP / "packaging"
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
HOMES = ["anna", "Jürgen Ünï 田中", 'it\'s a $HOME `x` "q" 100% back\\slash']

linux = pytest.mark.skipif(sys.platform != "linux", reason="packages for Linux")


def tool(name):
    """A mark for tests that need a program."""
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not here")


@pytest.fixture(scope="module")
def scripts():
    """The scripts of `packaging/`, which find each other as they do when run by path."""
    before = set(sys.modules)
    sys.path.insert(0, str(PACKAGING))
    names = ("share", "icons", "libraries", "binaries", "deb", "tarball", "sums")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        yield argparse.Namespace(**{name: importlib.import_module(name) for name in names})
    sys.path.remove(str(PACKAGING))
    for name in set(sys.modules) - before:
        if name in names:
            del sys.modules[name]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A folder of a bundle's shape: a program, a library that needs another, data."""
    folder = tmp_path_factory.mktemp("bundle") / "slipstream"
    (folder / "_internal").mkdir(parents=True)
    shutil.copy2(shutil.which("true"), folder / "slipstream")
    (library,) = itertools.islice(Path(sys.exec_prefix, "lib").rglob("*/torch/lib/libc10.so"), 1)
    shutil.copy2(library, folder / "_internal" / "libc10.so")
    (folder / "_internal" / "notice.txt").write_text("notice\n")
    (folder / "_internal" / "notice.txt").chmod(0o775)
    (folder / "_internal" / "libsame.so").symlink_to("libc10.so")
    return folder


@pytest.fixture(scope="module")
def shared(scripts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    scripts.share.spread(folder, VERSION)
    return folder


def test_every_command_and_option_is_in_the_man_page(shared):
    page = gzip.decompress((shared / "man/man1/slipstream.1.gz").read_bytes()).decode()
    text = page.replace("\\-", "-")
    parser = cli.parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert f"slipstream {name}" in text, name
        _, _, section = text.partition(f".SS slipstream {name}")
        assert section, f"{name} has no section"
        for action in command._actions:
            missing = [option for option in action.option_strings if option not in text]
            assert not missing, f"{name}: {missing}"
    hidden = argparse.SUPPRESS
    options = [o for a in parser._actions if a.help != hidden for o in a.option_strings]
    assert not [option for option in options if option not in text]


@tool("man")
def test_the_man_page_has_no_mistakes(shared):
    page = shared / "man/man1/slipstream.1.gz"
    told = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
        env=os.environ | {"MANROFFSEQ": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stderr == ""


def test_the_desktop_entry_bears_the_name_that_the_window_gives(shared):
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(shared / "applications" / f"{APP_ID}.desktop", encoding="utf-8")
    values = entry["Desktop Entry"]
    assert values["StartupWMClass"] == APP_ID
    assert values["Icon"] == APP_ID
    assert values["Exec"] == f"{values['TryExec']} %f"
    translated = [name for name in values if f"{name}[de]" in values]
    assert translated == ["GenericName", "Comment", "Keywords"]


@tool("desktop-file-validate")
def test_the_desktop_entry_is_valid(shared):
    entry = shared / "applications" / f"{APP_ID}.desktop"
    told = subprocess.run(["desktop-file-validate", entry], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (0, "")


@tool("appstreamcli")
def test_the_metadata_are_valid(shared):
    (path,) = (shared / "metainfo").iterdir()
    check = ["appstreamcli", "validate", "--no-net", str(path)]
    told = subprocess.run(check, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout
    assert "W:" not in told.stdout


def test_the_metadata_belong_to_this_version_and_this_desktop_entry(scripts, shared):
    (path,) = (shared / "metainfo").iterdir()
    tree = ElementTree.parse(path)
    assert path.name == f"{tree.findtext('id')}.metainfo.xml"
    assert tree.find("releases/release").get("version") == VERSION
    assert tree.find("releases/release").get("date") == "2023-11-14"
    assert tree.findtext("launchable") == f"{APP_ID}.desktop"
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    texts = list(tree.find("description").iter())
    german = [e for e in texts if e.get(language) == "de"]
    english = [e for e in texts if e.tag in ("p", "li") and e.get(language) is None]
    assert len(german) == len(english) > 0


def test_icons_have_the_sizes_they_say_and_something_in_them(scripts, shared, qapp):
    from PySide6.QtGui import QImage

    for size in scripts.icons.SIZES:
        image = QImage(str(shared / f"icons/hicolor/{size}x{size}/apps/slipstream.png"))
        assert (image.width(), image.height()) == (size, size)
        shown = {image.pixelColor(x, y).name() for x in range(size) for y in range(size)}
        assert {"#0b7668", "#ffffff"} <= shown, size
    assert ElementTree.parse(shared / "icons/hicolor/scalable/apps/slipstream.svg")


@linux
@tool("objdump")
def test_libraries_name_what_is_not_in_the_bundle(scripts, bundle):
    (library,) = (one for one in scripts.libraries.read(bundle) if one.path.name == "libc10.so")
    assert "libstdc++.so.6" in library.needs
    missing = scripts.libraries._missing(bundle, [library])
    assert missing >= {"libstdc++.so.6", "libc.so.6"}
    (bundle / "_internal" / "libstdc++.so.6").touch()
    try:
        assert "libstdc++.so.6" not in scripts.libraries._missing(bundle, [library])
    finally:
        (bundle / "_internal" / "libstdc++.so.6").unlink()


def test_a_search_path_outside_the_bundle_reaches_nothing(scripts, tmp_path):
    bundle = tmp_path / "bundle"
    (bundle / "_internal" / "lib").mkdir(parents=True)
    (tmp_path / "libelse.so.1").touch()
    (bundle / "_internal" / "lib" / "libown.so.1").touch()
    one = scripts.libraries.Binary(
        bundle / "_internal" / "one.so",
        ["libelse.so.1", "libown.so.1"],
        ["$ORIGIN/lib", str(tmp_path)],
    )
    assert scripts.libraries._missing(bundle, [one]) == {"libelse.so.1"}


@linux
@tool("dpkg-query")
def test_sonames_have_packages_and_a_strange_one_is_told(scripts):
    assert scripts.libraries._packages(["libc.so.6"]) == {"libc.so.6": "libc6"}
    with pytest.raises(LookupError, match=r"libnowhere\.so\.9"):
        scripts.libraries._packages(["libc.so.6", "libnowhere.so.9"])


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.1.0", "0.1.0"), ("0.2.0rc1", "0.2.0~rc1"), ("1.0.dev3", "1.0~dev3")],
)
def test_a_version_before_a_release_sorts_before_it(scripts, version, expected):
    assert scripts.deb.debian(version) == expected


@pytest.fixture(scope="module")
def package(scripts, bundle, tmp_path_factory):
    return scripts.deb.build(bundle, VERSION, tmp_path_factory.mktemp("deb"))


@linux
@tool("dpkg-deb")
def test_the_deb_holds_the_program_and_what_belongs_to_it(package):
    assert re.fullmatch(rf"slipstream_{re.escape(VERSION)}_\w+\.deb", package.name)
    told = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=5) for line in told.stdout.splitlines()]
    files = {line[5].removeprefix("./"): line[0] for line in lines}
    expected = {
        "usr/bin/slipstream -> ../lib/slipstream/slipstream": "lrwxrwxrwx",
        "usr/lib/slipstream/slipstream": "-rwxr-xr-x",
        "usr/lib/slipstream/_internal/libc10.so": "-rw-r--r--",
        "usr/lib/slipstream/_internal/libsame.so -> libc10.so": "lrwxrwxrwx",
        "usr/lib/slipstream/_internal/notice.txt": "-rw-r--r--",
        "usr/share/applications/slipstream.desktop": "-rw-r--r--",
        "usr/share/doc/slipstream/copyright": "-rw-r--r--",
        "usr/share/doc/slipstream/changelog.gz": "-rw-r--r--",
        "usr/share/man/man1/slipstream.1.gz": "-rw-r--r--",
        "usr/share/icons/hicolor/16x16/apps/slipstream.png": "-rw-r--r--",
        "usr/share/icons/hicolor/scalable/apps/slipstream.svg": "-rw-r--r--",
    }
    assert {name: files.get(name) for name in expected} == expected
    assert {line[1] for line in lines} == {"root/root"}
    assert all(mode == "drwxr-xr-x" for name, mode in files.items() if name.endswith("/"))


@linux
@tool("dpkg-deb")
def test_the_deb_says_its_version_its_size_and_what_it_depends_on(package):
    told = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True, check=True)
    fields = dict(re.findall(r"^(\S+): (.*)$", told.stdout, re.MULTILINE))
    assert fields["Version"] == VERSION
    assert int(fields["Installed-Size"]) > 100
    assert re.match(r"libc6 \(>= 2\.\d+\), ", fields["Depends"])
    assert "libstdc++6" in fields["Depends"]


@linux
@tool("dpkg-deb")
def test_the_sums_in_the_deb_are_right(package, tmp_path):
    subprocess.run(["dpkg-deb", "-R", package, tmp_path], check=True)
    check = ["md5sum", "--check", "--quiet", "DEBIAN/md5sums"]
    subprocess.run(check, cwd=tmp_path, check=True)


@pytest.fixture(scope="module")
def archive(scripts, bundle, tmp_path_factory):
    return scripts.tarball.build(bundle, VERSION, tmp_path_factory.mktemp("archive"))


@linux
@tool("objdump")
def test_the_same_bundle_makes_the_same_archive(scripts, bundle, archive, tmp_path):
    os.utime(bundle / "_internal" / "notice.txt")
    again = scripts.tarball.build(bundle, VERSION, tmp_path)
    assert again.name == archive.name
    assert again.read_bytes() == archive.read_bytes()
    with tarfile.open(again) as opened:
        members = opened.getmembers()
    assert {m.mtime for m in members} == {1700000000}
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert {m.mode for m in members if m.isfile()} == {0o644, 0o755}


@pytest.fixture
def user(archive, tmp_path, request):
    """A home of that name with the unpacked archive in it, and how its script is run."""
    home = tmp_path / request.param
    (home / "unpacked here").mkdir(parents=True)
    subprocess.run(["tar", "-xzf", archive, "-C", home / "unpacked here"], check=True)
    (top,) = (home / "unpacked here").iterdir()

    def run(*arguments, expect=0, **more):
        names = ("PATH", "TMPDIR")
        clean = {name: os.environ[name] for name in names if name in os.environ}
        told = subprocess.run(
            ["sh", str(top / "install.sh"), *arguments],
            env=clean | {"HOME": str(home)} | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == expect, told.stdout + told.stderr
        return told.stdout + told.stderr

    return argparse.Namespace(home=home, top=top, run=run)


def all_of(user):
    here = user.home / "unpacked here"
    return {p for p in user.home.rglob("*") if here not in (p, *p.parents)}


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES, indirect=True)
def test_it_installs_into_any_home_and_leaves_the_users_data_only(user):
    said = user.run()
    command = user.home / ".local/bin/slipstream"
    assert subprocess.run([command], check=False).returncode == 0
    assert f"{command.parent} is not in your PATH" in said
    assert (user.home / ".local/share/man/man1/slipstream.1.gz").is_file()
    kept = user.home / ".local/share/slipstream/chats.db"
    kept.parent.mkdir()
    kept.write_text("mine")
    said = user.run("--uninstall")
    assert str(kept.parent) in said
    assert {path for path in all_of(user) if path.is_file() or path.is_symlink()} == {kept}
    assert all_of(user) == {kept, *kept.parents} & all_of(user)


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES, indirect=True)
def test_the_installed_desktop_entry_starts_the_installed_program(user):
    user.run()
    entry = user.home / ".local/share/applications/slipstream.desktop"
    lines = dict(line.split("=", 1) for line in entry.read_text().splitlines() if "=" in line)
    program = str(user.home / ".local/share/slipstream-app/slipstream/slipstream")
    unescaped = lines["Exec"].replace("\\\\", "\\")
    quoted, _, rest = unescaped.rpartition('"')
    assert rest == " %f"
    assert re.sub(r'\\(["`$\\])', r"\1", quoted[1:]).replace("%%", "%") == program
    assert lines["TryExec"].replace("\\\\", "\\") == program
    if shutil.which("desktop-file-validate"):
        told = subprocess.run(["desktop-file-validate", entry], capture_output=True, text=True)
        assert (told.returncode, told.stdout) == (0, "")


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES[:1], indirect=True)
def test_a_newer_version_replaces_an_older_one_whole(user):
    user.run()
    app = user.home / ".local/share/slipstream-app"
    (app / "slipstream/_internal/of-the-old-version.so").touch()
    (app / "share/icons/hicolor/8x8/apps").mkdir(parents=True)
    (app / "share/icons/hicolor/8x8/apps/old.png").touch()
    old = user.home / ".local/share/icons/hicolor/8x8/apps/old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    user.run()
    assert not old.parent.exists()
    assert not (app / "slipstream/_internal/of-the-old-version.so").exists()
    assert not list(app.parent.glob("*.new"))


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES[:1], indirect=True)
def test_another_program_of_the_name_stays(user):
    other = user.home / ".local/bin/slipstream"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\n")
    assert "is another program and stays" in user.run()
    user.run("--uninstall")
    assert other.read_text() == "#!/bin/sh\n"


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES[1:2], indirect=True)
def test_a_program_that_runs_is_neither_replaced_nor_taken_away(user):
    shutil.copy2(shutil.which("sleep"), user.top / "slipstream" / "slipstream")
    user.run()
    program = user.home / ".local/share/slipstream-app/slipstream/slipstream"
    with subprocess.Popen([program, "60"]) as running:
        for arguments in ((), ("--uninstall",)):
            assert "Slipstream is running. Close it first" in user.run(*arguments, expect=1)
        running.kill()
    assert program.is_file()
    user.run("--uninstall")
    assert not program.exists()


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES[:1], indirect=True)
def test_half_an_archive_installs_nothing(user):
    (user.top / "slipstream" / "slipstream").unlink()
    assert "not whole" in user.run(expect=1)
    assert not all_of(user)


@linux
@tool("objdump")
@pytest.mark.parametrize("user", HOMES[:1], indirect=True)
def test_an_older_system_is_told_what_it_lacks(user):
    script = user.top / "install.sh"
    text = script.read_text()
    script.write_text(re.sub(r"glibc 2\.\d+", "glibc 2.999", re.sub(r"'2\.\d+'", "'2.999'", text)))
    assert "needs glibc 2.999 or newer; here is 2." in user.run(expect=1)
    assert not all_of(user)


def test_sums_are_as_sha256sum_reads_them(scripts, tmp_path):
    (tmp_path / "a.deb").write_text("a")
    (tmp_path / "b.tar.gz").write_text("b")
    scripts.sums.write(tmp_path)
    scripts.sums.write(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
    assert len((tmp_path / "SHA256SUMS").read_text().splitlines()) == 2
