"""The recipes for Windows and macOS, which nothing here can run: do they hold together?"""

import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.start import APP_ID

TOP = Path(__file__).parents[1]
PACKAGING = TOP / "packaging"
ISS = PACKAGING / "windows" / "slipstream.iss"
DMG = PACKAGING / "macos" / "dmg.sh"
SPEC = PACKAGING / "slipstream.spec"
MADE = {"dist", "dist/slipstream", "dist/Slipstream.app"}  # by build.py, from the spec
NOT_RUN = re.compile(r"not run", re.IGNORECASE)

# Inno Setup's own words, as far as they are used, from its manual.
SETUP = set(
    "AppId AppName AppVersion AppPublisher VersionInfoVersion LicenseFile OutputDir "
    "OutputBaseFilename ArchitecturesAllowed ArchitecturesInstallIn64BitMode MinVersion "
    "PrivilegesRequired DefaultDirName DisableProgramGroupPage UninstallDisplayName "
    "UninstallDisplayIcon CloseApplications Compression SolidCompression LZMAUseSeparateProcess "
    "WizardStyle".split()
)
FIELDS = {
    "Languages": {"Name", "MessagesFile"},
    "Tasks": {"Name", "Description", "Flags"},
    "InstallDelete": {"Type", "Name"},
    "Files": {"Source", "DestDir", "Flags"},
    "Icons": {"Name", "Filename", "Tasks"},
    "Registry": {"Root", "Subkey", "ValueType", "ValueName", "ValueData", "Flags"},
    "Run": {"Filename", "Description", "Flags"},
}
FLAGS = {
    "Tasks": {"unchecked"},
    "Files": {"ignoreversion", "recursesubdirs", "createallsubdirs"},
    "Registry": {"uninsdeletevalue", "uninsdeletekey"},
    "Run": {"nowait", "postinstall", "skipifsilent"},
}
CONSTANTS = {"app", "autopf", "autoprograms", "autodesktop"}
FIELD = re.compile(r'(\w+):\s*("(?:[^"]|"")*"|[^";]+?)\s*(?:;\s*|$)')


def script():
    """The installer's script: what is defined, what [Setup] says, and the other sections' lines."""
    defined, setup, lines, section = {}, {}, {}, ""
    for line in map(str.strip, ISS.read_text(encoding="utf-8").splitlines()):
        if not line or line.startswith((";", "#ifndef", "#error", "#endif")):
            continue
        if line.startswith("#define"):
            _, name, value = line.split(maxsplit=2)
            defined[name] = value.strip('"')
        elif line.startswith("["):
            section = line.strip("[]")
            assert section == "Setup" or section not in lines, line
            lines.setdefault(section, [])
        elif section == "Setup":
            name, _, value = line.partition("=")
            assert name not in setup, line
            setup[name] = value
        else:
            fields = FIELD.findall(line)
            assert "".join(FIELD.split(line)[::3]) == "", line  # nothing but fields
            lines[section].append({name: value.strip('"') for name, value in fields})
    return defined, setup, lines


def test_the_installers_script_has_known_words_only():
    _, setup, lines = script()
    assert set(setup) <= SETUP
    assert set(lines) - {"Setup"} == set(FIELDS)
    for section, rows in lines.items():
        for row in rows:
            assert set(row) <= FIELDS[section], row
            assert set(row.get("Flags", "").split()) <= FLAGS.get(section, set()), row


def test_every_constant_of_the_installer_is_known_and_every_task_there():
    text = ISS.read_text(encoding="utf-8")
    defined, _, lines = script()
    used = re.findall(r"\{(#?)([A-Za-z]+)\}", text)
    assert {name for sign, name in used if sign} == {*defined, "Version"}
    assert {name for sign, name in used if not sign} <= CONSTANTS
    assert set(re.findall(r"\{cm:(\w+)", text)) == {"CreateDesktopIcon", "LaunchProgram"}
    tasks = {row["Name"] for row in lines["Tasks"]}
    assert {row["Tasks"] for row in lines["Icons"] if "Tasks" in row} == tasks


def test_the_installer_packs_what_is_built_and_what_is_here():
    defined, setup, lines = script()
    assert beside(defined["Bundle"]) in MADE
    assert [row["Source"] for row in lines["Files"]] == [r"{#Bundle}\*"]
    assert beside(setup["OutputDir"]) in MADE
    assert beside(setup["LicenseFile"]) == "LICENSE"
    assert (TOP / "LICENSE").is_file()


def beside(path):
    """A path that starts at the script, from the top."""
    return (ISS.parent / path.replace("\\", "/")).resolve().relative_to(TOP.resolve()).as_posix()


def test_the_installer_asks_no_administrator_and_leaves_what_the_user_made():
    _, setup, lines = script()
    assert setup["PrivilegesRequired"] == "lowest"
    assert setup["ArchitecturesInstallIn64BitMode"] == "x64compatible"
    assert re.fullmatch(r"\{\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}", setup["AppId"])
    assert "UninstallDelete" not in lines
    assert all(row["Name"].startswith("{app}\\_internal") for row in lines["InstallDelete"])


def test_versions_come_from_the_project_alone():
    _, setup, _ = script()
    assert setup["AppVersion"] == setup["VersionInfoVersion"] == "{#Version}"
    found = re.compile(r"\b\d+\.\d+\.\d+\b")
    for path in (ISS, DMG, ISS.parent / "README.md", DMG.parent / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert set(found.findall(text)) <= {"10.0.17763"}, path  # Windows' own
        assert NOT_RUN.search(text), path
    assert "iscc /DVersion=$version" in (ISS.parent / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"version=\$\((sed .*)\)", DMG.read_text(encoding="utf-8"))
    told = subprocess.run(["sh", "-c", line], cwd=TOP, capture_output=True, text=True, check=True)
    project = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{told.stdout.strip()}"\n' in project


def test_the_image_is_made_of_what_is_built_and_what_is_here():
    text = DMG.read_text(encoding="utf-8")
    subprocess.run(["sh", "-n", str(DMG)], check=True)
    subprocess.run(["bash", "-n", str(DMG)], check=True)
    assert re.search(r"^app=(.*)$", text, re.MULTILINE)[1] in MADE
    for named in re.findall(r"packaging/\S+\.plist", text):
        assert all(plistlib.loads((TOP / named).read_bytes()).values())
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(DMG)], check=True)


def test_without_a_bundle_the_image_is_refused_in_words(tmp_path):
    (tmp_path / "packaging" / "macos").mkdir(parents=True)
    copy = shutil.copy(DMG, tmp_path / "packaging" / "macos")
    done = subprocess.run([copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "dist/Slipstream.app is not there" in done.stderr


@pytest.mark.parametrize("folder", [ISS.parent, DMG.parent])
def test_what_the_recipes_name_is_here(folder):
    for name in re.findall(
        r"packaging[/\\][\w/\\]+\.\w+", (folder / "README.md").read_text("utf-8")
    ):
        path = TOP / name.replace("\\", "/")
        assert path.is_file() or path.name in ("build.py", "slipstream.spec"), name


@pytest.mark.skipif(not SPEC.exists(), reason="the spec is not here yet")
def test_the_spec_makes_what_the_recipes_take():
    text = SPEC.read_text(encoding="utf-8")
    assert set(re.findall(r'name="([^"]+)"', text)) == {"slipstream", "Slipstream.app"}
    assert re.search(r'bundle_identifier="([^"]+)"', text)[1] == APP_ID
