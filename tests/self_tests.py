"""Processes in place of the one that does the checks of `slipstream --self-test`."""

import contextlib
import ctypes
import os
import socket
import time

from app import self_test


def passing(connection, home, model, said):
    self_test._do(connection, "first", lambda: "it works")
    self_test._do(connection, "second", lambda: "it works too")
    connection.send(None)


def failing(connection, home, model, said):
    def check():
        raise ValueError("it is blank")

    self_test._settle(home, said)
    self_test._do(connection, "first", lambda: "it works")
    self_test._do(connection, "second", check)
    connection.send(None)


def crashing(connection, home, model, said):
    self_test._settle(home, said)
    self_test._do(connection, "first", lambda: "it works")
    os.write(2, b"a last word\n")
    self_test._do(connection, "second", lambda: ctypes.string_at(0))


def hanging(connection, home, model, said):
    self_test._do(connection, "first", lambda: "it works")
    self_test._do(connection, "second", lambda: time.sleep(60))


def writing(connection, home, model, said):
    from app import paths

    self_test._settle(home, said)
    self_test._do(connection, "home", lambda: str(paths.ensure(paths.data_folder())))
    connection.send(None)


def ask(address):
    """Begin to reach an address; nothing waits for it."""
    with socket.socket() as made, contextlib.suppress(OSError):
        made.setblocking(False)
        made.connect((address, 9))
