"""Proof that the packages in a folder work: `python packaging/check.py FOLDER`, as root.

In one Debian system with what the .deb declares, in one without, neither with Python, and all but
apt cut off from the network. Prints a line for each check; the exit code tells. Needs debootstrap
and a Debian mirror.
"""

import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import roots
from roots import Root

INSIDE = "/usr/lib/slipstream/_internal"
USER = "anna"
FOREIGN = "juergen"  # whose home has a name of several scripts, and a blank
FOREIGN_HOME = "/home/Jürgen Ünï 田中"
SCREEN = ("xvfb", "xauth", "x11-utils")
QUESTION = ("--prompt", "Name three rivers.", "--max-tokens", "24", "--temperature", "0", "--json")
KEPT = (".local/share/slipstream", ".config/slipstream", ".cache/slipstream")
LOGS = ".local/state/slipstream"
COLD, WARM = 8.0, 3.0  # seconds until the first window shows
FONTS = ".cache/fontconfig"  # which any program with a window leaves there
# What apt and dpkg write for themselves.
OF_APT = re.compile(r"var/(cache|log)(/|$)|var/lib/(apt|dpkg)(/|$)|etc/ld\.so\.cache")
MISSING = """
cd "$1"; for file in $(find . -name '*.so*' -type f) ; do
  ldd "$file" 2>/dev/null | sed -n "s|^\\s*\\(.*\\) => not found|\\1 $file|p"
done
"""
WINDOW = """
Xvfb :9 -screen 0 1280x800x24 >/dev/null 2>&1 &
screen=$! seen=
while ! xwininfo -display :9 -root >/dev/null 2>&1; do sleep 0.1; done
began=$(date +%s%N)
DISPLAY=:9 slipstream >/dev/null 2>&1 &
program=$!
for _ in $(seq 1200); do
  id=$(xwininfo -display :9 -root -tree | sed -n 's/^ *\\(0x[0-9a-f]*\\).*"Slipstream".*/\\1/p;T;q')
  [ -n "$id" ] && xwininfo -display :9 -id "$id" | grep -q IsViewable && seen=yes && break
  kill -0 $program 2>/dev/null || break
  sleep 0.02
done
[ -n "$seen" ] && echo $((($(date +%s%N) - began) / 1000000))
xwininfo -display :9 -root -tree | grep -m 1 '"Slipstream"'
kill $program; wait $program; kill $screen
"""


class Report:
    """A line for each check, with its time."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.count = 0
        self.began = time.monotonic()

    @contextmanager
    def check(self, name: str) -> Iterator[Callable[[str], None]]:
        """Do a check in here; what it hands to the function given stands beside its name."""
        began, notes = time.monotonic(), [name]
        self.count += 1
        try:
            yield notes.append
            word = "ok"
        except Exception as error:
            self.failed.append(name)
            word = "FAILED"
            notes.append(str(error) or type(error).__name__)
        print(f"{word:6} {time.monotonic() - began:6.1f} s  {': '.join(notes)}", flush=True)

    def end(self) -> int:
        """The last line; the exit code."""
        took = time.monotonic() - self.began
        of = f"{len(self.failed)} of {self.count} checks failed" if self.failed else "all passed"
        print(f"{self.count} checks in {took / 60:.1f} min, {of}")
        return 1 if self.failed else 0


def main(folder: Path) -> int:
    """All checks of the packages in `folder`; the exit code."""
    (package,) = folder.glob("*.deb")
    (archive,) = folder.glob("*.tar.gz")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="slipstream-roots.") as made:
        with report.check("two Debian systems"):
            full = roots.make(Path(made, "with"), folder.resolve())
            full.add_user(USER, f"/home/{USER}")
            full.add_user(FOREIGN, FOREIGN_HOME)
            bare = roots.copy(full, Path(made, "without"))
        if not report.failed:
            check_package(report, full, package.name)
            check_archive(report, full, archive.name)
            check_bare(report, bare, package.name, archive.name)
    return report.end()


def check_package(report: Report, root: Root, package: str) -> None:
    """Install the .deb with what it declares, use it, remove it."""
    before = root.files()
    with report.check("apt installs the .deb") as note:
        root.apt("update")
        root.apt("install", "--no-install-recommends", f"/mnt/{package}")
        note(f"{root.do('dpkg-query', '-W').count(chr(10))} packages in all")
    with report.check("every library finds what it needs, by the .deb's dependencies alone"):
        missing = root.do("sh", "-c", MISSING, "sh", INSIDE)
        assert not missing, missing
    with report.check("no Python is there"):
        assert not _pythons(root), _pythons(root)
    with report.check("font and screen"):
        root.apt("install", "--no-install-recommends", "fonts-dejavu-core", *SCREEN)
    installed = root.files()
    own = _owned(root)
    use(report, root, USER, "slipstream")
    for limit in (COLD, WARM, WARM):
        with report.check(f"first window in {limit} s") as note:
            if limit == COLD:
                Path("/proc/sys/vm/drop_caches").write_text("3")
            said = root.do("sh", "-c", WINDOW, user=USER).splitlines()
            assert len(said) > 1, said
            assert said[0].isdecimal(), said
            # by which a desktop knows whose window it is, see slipstream.desktop
            assert '("slipstream"' in said[1], said[1]
            took = int(said[0]) / 1000
            assert took < limit, f"{took:.2f} s"
            note(f"{took:.2f} s")
    with report.check("purge leaves the user's data only") as note:
        root.do("apt-get", "-yq", "purge", "slipstream")
        after = root.files()
        left = {name for name in after - installed | (after & own) if not OF_APT.match(name)}
        named = {name for name in after - before if "slipstream" in name}
        note(_judge(left | named, f"home/{USER}"))


def check_archive(report: Report, root: Root, archive: str) -> None:
    """Install the .tar.gz for an ordinary user, use it, remove it."""
    before, home = root.files(), FOREIGN_HOME.lstrip("/")
    with report.check(f"the .tar.gz unpacks in “{FOREIGN_HOME}” and installs") as note:
        root.do("sh", "-c", f"cd && tar -xzf '/mnt/{archive}'", user=FOREIGN)
        said = root.do("sh", "-c", "cd && sh slipstream-*/install.sh", user=FOREIGN)
        root.do("sh", "-c", "cd && rm -r slipstream-*", user=FOREIGN)
        note(said.splitlines()[0])
    use(report, root, FOREIGN, f"{FOREIGN_HOME}/.local/bin/slipstream")
    with report.check("uninstall leaves the user's data only") as note:
        script = f"{FOREIGN_HOME}/.local/share/slipstream-app/install.sh"
        root.do("sh", script, "--uninstall", user=FOREIGN)
        note(_judge(root.files() - before, home))


def use(report: Report, root: Root, user: str, program: str) -> None:
    """What a user does with it, without a network."""
    with report.check("self-test without a screen") as note:
        said = root.do(program, "--self-test", user=user, QT_QPA_PLATFORM="offscreen")
        note(said.splitlines()[-1])
    with report.check("self-test on a screen") as note:
        said = root.do("xvfb-run", "-a", program, "--self-test", user=user)
        assert "xcb" in said, said
        note(said.splitlines()[-1])
    with report.check("a chat answers") as note:
        asked = (program, "chat", "--model", "starter", "--draft", "ngram", *QUESTION)
        said = root.do(*asked, user=user)
        answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        assert answer["text"].strip(), said
        note(answer["text"].strip().replace("\n", " ")[:60])


def check_bare(report: Report, root: Root, package: str, archive: str) -> None:
    """Without the libraries it says which, and ends like a program."""
    with report.check("the .deb without what it declares"):
        root.do("dpkg", "--force-depends", "-i", f"/mnt/{package}")
        assert not _pythons(root), _pythons(root)
    for platform in ("offscreen", "xcb"):
        with report.check(f"the missing libraries are named, for {platform}") as note:
            note(_named(root, "slipstream", INSIDE, platform))
    with report.check("and by the program of the .tar.gz") as note:
        root.do("dpkg", "--purge", "slipstream")
        root.do("sh", "-c", f"cd && tar -xzf '/mnt/{archive}'", user=FOREIGN)
        (program,) = Path(root.path, FOREIGN_HOME.lstrip("/")).glob("*/slipstream/slipstream")
        program = Path("/", program.relative_to(root.path))
        note(_named(root, str(program), str(program.parent / "_internal"), "offscreen"))


def _named(root: Root, program: str, inside: str, platform: str) -> str:
    """How many libraries that it lacks for this platform the program names."""
    plugin = f"PySide6/Qt/plugins/platforms/libq{platform}.so"
    told = root.do("ldd", f"{inside}/{plugin}", LD_LIBRARY_PATH=inside, user=FOREIGN)
    lacks = re.findall(r"^\s*(\S+) => not found", told, re.MULTILINE)
    assert lacks, "nothing is missing here"
    ended = root.run(program, user=FOREIGN, QT_QPA_PLATFORM=platform)
    unnamed = [name for name in lacks if name not in ended.stdout]
    assert not unnamed, f"not named: {', '.join(unnamed)}\n{ended.stdout}"
    assert 0 < ended.returncode < 128, f"exit code {ended.returncode}\n{ended.stdout}"
    assert "Traceback" not in ended.stdout, ended.stdout
    return f"{len(lacks)}, exit code {ended.returncode}"


def _owned(root: Root) -> set[str]:
    """What belongs to the package and to no other."""
    listed = set(root.do("dpkg", "-L", "slipstream").split("\n"))
    others: set[str] = set()
    for path in Path(root.path, "var/lib/dpkg/info").glob("*.list"):
        if path.stem != "slipstream":
            others |= set(path.read_text(encoding="utf-8").splitlines())
    return {name.lstrip("/") for name in listed - others} - {"", "."}


def _pythons(root: Root) -> list[str]:
    """Any Python that could be run or loaded, but ours."""
    ours = INSIDE.lstrip("/")
    found = re.compile(r"(.*/)?(s?bin/python.*|libpython.*\.so.*)")
    return sorted(n for n in root.files() if found.fullmatch(n) and not n.startswith(ours))


def _judge(left: set[str], home: str) -> str:
    """Names what is left; raises AssertionError where it is not the user's data."""
    kept = [f"{home}/{name}" for name in (*KEPT, LOGS, FONTS)]
    parents = {str(folder) for name in kept for folder in Path(name).parents}
    strange = sorted(
        name
        for name in left - parents
        if not any(name == data or name.startswith(f"{data}/") for data in kept)
    )
    assert not strange, "left: " + ", ".join(strange[:20])
    return f"{len(left)} of those"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and take the systems away
    sys.exit(main(Path(sys.argv[1])))
