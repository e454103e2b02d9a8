"""The terminal command `slipstream gpu`: how it stands with the graphics card, on and off.

Knows no Qt.
"""

import argparse
import sys

from app.terminal import ProgressLine, stop_flag, visible


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What to do."""
    command.add_argument(
        "what",
        nargs="?",
        choices=("enable", "disable"),
        help="fetch what computes on the card, some GB; or use the processor again",
    )


def carry_out(arguments: argparse.Namespace) -> int:
    """Tell, enable or disable; the exit code. Raises EngineError, OSError."""
    from app import gpu_addon

    if arguments.what == "enable":
        _enable()
    elif arguments.what == "disable":
        gpu_addon.disable()
    _tell()
    return 0


def _enable() -> None:
    from app import gpu_addon, graphics, paths, settings
    from engine.library import hub

    outlook = graphics.look()
    if outlook.state is graphics.State.OFFERED:
        print(
            f"{(outlook.size - outlook.come) / 1e9:.1f} GB are downloaded, and take "
            f"{outlook.unpacked / 1e9:.1f} GB in {visible(str(paths.data_folder()))}",
            file=sys.stderr,
        )
    access = hub.Access(offline=settings.load(paths.config_folder()).offline)
    line = ProgressLine()
    with stop_flag() as stopped:
        try:
            gpu_addon.enable(line, stopped, access)
        finally:
            line.clear()


def _tell() -> None:
    from app import graphics

    outlook = graphics.look()
    print(visible(outlook.said.text))
    if outlook.command:
        print(visible(outlook.command))
    if outlook.state is graphics.State.OFFERED:
        print(
            f"“slipstream gpu enable” downloads {outlook.size / 1e9:.1f} GB for it, which take "
            f"{outlook.unpacked / 1e9:.1f} GB on the disk."
        )
