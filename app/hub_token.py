"""The access token of the hub: from HF_TOKEN, the system's keyring, or kept until the program ends.

It is never written to a file of ours, logged, put on a command line or into an error's text. The
keyring may ask the user to unlock it, so nothing here is called in the GUI thread.
"""

import logging
import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SERVICE, NAME = "slipstream", "huggingface"
LONGEST = 1000  # characters; the hub's have about 40
log = logging.getLogger(__name__)


class Source(StrEnum):
    """Where the token is."""

    NONE = "none"
    ENVIRONMENT = "environment"
    KEYRING = "keyring"
    MEMORY = "memory"  # gone when the program ends
    FILE = "file"  # of the hub's own tools


@dataclass(frozen=True)
class Token:
    """A token and where it is; the value is None where there is no token."""

    value: str | None = field(default=None, repr=False)
    source: Source = Source.NONE


class Tokens:
    """Finds the token, keeps one that was typed in, forgets it."""

    def __init__(self) -> None:
        self._typed: str | None = None

    def find(self) -> Token:
        """The one that is used: what was set for this process goes first."""
        for source, value in (
            (Source.ENVIRONMENT, os.environ.get("HF_TOKEN")),
            (Source.MEMORY, self._typed),
            (Source.KEYRING, _from_keyring()),
            (Source.FILE, _from_file()),
        ):
            token = clean(value or "")
            if token:
                return Token(token, source)
        return Token()

    def keep(self, value: str) -> None:
        """Use this one from now on; in the keyring, or where there is none until the end."""
        token = clean(value)
        self._typed = None if not token or _into_keyring(token) else token

    def remove(self) -> None:
        """Forget the one that was typed in, now or earlier."""
        self._typed = None
        _out_of_keyring()


def clean(value: str) -> str:
    """`value` as a token; empty where it cannot be one, as a header must not hold it."""
    token = value.strip()
    sound = token.isascii() and token.isprintable() and " " not in token and len(token) <= LONGEST
    return token if sound else ""


# A keyring talks to a service of the desktop. What a missing, locked or broken one raises is
# without end, and its text may hold what was handed over: it is neither told nor logged.


def _from_keyring() -> str | None:
    try:
        import keyring

        return keyring.get_password(SERVICE, NAME)
    except Exception as error:
        log.info("no token from the keyring: %s", type(error).__name__)
        return None


def _into_keyring(token: str) -> bool:
    try:
        import keyring

        keyring.set_password(SERVICE, NAME, token)
        # The null backend takes everything and keeps nothing.
        return keyring.get_password(SERVICE, NAME) == token
    except Exception as error:
        log.info("the keyring keeps no token: %s", type(error).__name__)
        return False


def _out_of_keyring() -> None:
    try:
        import keyring

        if keyring.get_password(SERVICE, NAME) is not None:
            keyring.delete_password(SERVICE, NAME)
    except Exception as error:
        log.info("no token removed from the keyring: %s", type(error).__name__)


def _from_file() -> str | None:
    """What `hf auth login` kept."""
    from huggingface_hub import constants

    try:
        with Path(constants.HF_TOKEN_PATH).open(encoding="utf-8") as file:
            return file.read(LONGEST)
    except (OSError, ValueError):
        return None
