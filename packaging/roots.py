"""Small Debian systems in folders of their own, made by debootstrap, and commands run in them.

Each command has its own mounts and processes, which end with it however it ends, and a network only
where it is given one. Needs root.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RELEASE = "bookworm"  # Debian 12, the oldest that is served
SOURCES = Path("/etc/apt")
PASSING = ("proc", "sys", "dev", "run", "tmp", "mnt")  # not files of the system
ENTER = """
mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" &&
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp" && mount --bind -o ro "$2" "$1/mnt" || exit 125
ip link set lo up 2>/dev/null
user=$3 root=$1; shift 3
chroot --userspec="$user" "$root" /usr/bin/env -i "$@"
"""


@dataclass(frozen=True)
class Root:
    """A Debian system in the folder `path`. In it, `shown` is /mnt."""

    path: Path
    shown: Path

    def run(
        self,
        *command: str,
        user: str = "root",
        network: bool = False,
        seconds: float = 600,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """The command's end, with what it said on both streams in `stdout`."""
        given = {
            "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": self.home(user),
            "USER": user,
            "LANG": "C.UTF-8",
        }
        words = [f"{name}={value}" for name, value in (given | environment).items()]
        apart = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
        entering = ["sh", "-c", ENTER, "sh", str(self.path), str(self.shown), user]
        return subprocess.run(
            ["unshare", *apart, *entering, *words, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )

    def do(self, *command: str, **how: str | bool | float) -> str:
        """What the command said. Raises AssertionError with the end of that where it failed."""
        ended = self.run(*command, **how)  # type: ignore[arg-type]
        lines = "\n".join(ended.stdout.splitlines()[-30:])
        assert ended.returncode == 0, f"{' '.join(command)}: {ended.returncode}\n{lines}"
        return ended.stdout

    def apt(self, *words: str) -> str:
        """`apt-get` with a network, asking nothing."""
        return self.do("apt-get", "-yq", *words, network=True, DEBIAN_FRONTEND="noninteractive")

    def add_user(self, name: str, home: str) -> None:
        """An ordinary user."""
        self.do("useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", name)

    def home(self, user: str) -> str:
        """The user's home folder, as the system has it."""
        lines = (self.path / "etc/passwd").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[5] for line in lines if line.startswith(f"{user}:"))

    def files(self) -> set[str]:
        """Everything in it, but what is there only while it runs."""
        return {
            str(Path(folder, name).relative_to(self.path))
            for top in self.path.iterdir()
            if top.name not in PASSING and not top.is_symlink()
            for folder, folders, names in os.walk(top)
            for name in [*folders, *names]
        }


def make(path: Path, shown: Path) -> Root:
    """A new minimal system."""
    ended = subprocess.run(
        ["debootstrap", "--variant=minbase", RELEASE, str(path), _mirror()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, "\n".join(ended.stdout.splitlines()[-5:])
    return Root(path, shown)


def copy(root: Root, path: Path) -> Root:
    """Another system like that one."""
    subprocess.run(["cp", "-a", str(root.path), str(path)], check=True)
    return Root(path, root.shown)


def _mirror() -> str:
    """Where apt of this machine has its packages from."""
    return next(_addresses(), "http://deb.debian.org/debian")


def _addresses() -> Iterator[str]:
    for path in [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]:
        if path.suffix in (".list", ".sources") and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                if found := re.match(r"(?:URIs:|deb(?: \[.*\])?)\s+(\S+/debian)/?(?:\s|$)", line):
                    yield found[1]
