"""The terminal command `slipstream forget`: what drafts learned is gone. Knows no Qt."""

import argparse

CHATS, DRAFTING = "chats", "drafting"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What to forget."""
    command.add_argument(
        "what",
        nargs="+",
        choices=(CHATS, DRAFTING),
        metavar="chats|drafting",
        help="chats: the text that drafts copy from, the chats themselves stay; drafting: what it "
        "costs and how often each draft is right here",
    )
    command.epilog = (
        "A window that is open knows what it has read until it is closed, and keeps learning."
    )


def carry_out(arguments: argparse.Namespace) -> int:
    """Forget; the exit code. Raises OSError where a file cannot be deleted."""
    from app import paths
    from engine.learned import Learned
    from engine.past import Past

    if CHATS in arguments.what:
        Past(paths.past_folder()).clear()
        print("Forgotten: what drafts learned from chats.")
    if DRAFTING in arguments.what:
        Learned(paths.learned_file()).clear()
        print("Forgotten: what was learned of drafting.")
    return 0
