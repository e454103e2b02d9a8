"""Puts the program together: hooks, theme, worker, view models, window. Returns it unrun.

The window is shown before anything is loaded; torch is imported by the model lane's first job.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

from app import paths, places, release, request, resources, settings, torch_addon
from app.appearance import Appearance
from app.chats.store import Store
from app.crashes import Crashes
from app.geometry import Geometry
from app.instance import Instance
from app.mark import Mark
from app.notify import Notifier
from app.settings_file import SettingsFile
from app.unforeseen import Unforeseen
from app.viewmodels.about import About
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Throttle
from app.viewmodels.chat import Chat
from app.viewmodels.compare import Compare
from app.viewmodels.conversations import Conversations
from app.viewmodels.counting import Counting
from app.viewmodels.folders import Folders
from app.viewmodels.gpu import Gpu
from app.viewmodels.history import History, StoreLike
from app.viewmodels.hub import Hub
from app.viewmodels.models import Models
from app.viewmodels.presets import Presets
from app.viewmodels.shelf import Shelf, ShelfLike, guidance_table
from app.viewmodels.stats import Stats
from app.viewmodels.writing import Writing
from app.widgets import code
from app.widgets.folders import FoldersDialog
from app.window import Parts, Window
from app.worker import SessionLike, Worker
from engine.api import Loaded
from engine.errors import EngineError, Reason
from engine.fit import Room
from engine.library.hub import Access, require_online
from engine.library.index import Index
from engine.past import Past

APP_ID = "slipstream"
LOG_NAME = "slipstream.log"
MAX_LOG_BYTES = 2_000_000
UNSENT_MS = 2_000  # between two times that what is being written is kept
END_SECONDS = 1.2  # that the threads have to end; all of the end takes less than 2
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Program:
    """All parts, for whoever runs or scripts them."""

    app: QApplication
    window: Window
    worker: Worker
    alerts: Alerts
    models: Models
    chat: Chat
    stats: Stats
    hub: Hub
    gpu: Gpu
    folders: Folders
    history: History
    conversations: Conversations
    compare: Compare

    def begin(self) -> None:
        """Look for what is kept, and for models."""
        self.worker.tidy(lambda _, __: code.warm())
        self.conversations.start()
        self.history.look_for_unsent()
        self.models.start()
        self.gpu.start()


def build(
    argv: Sequence[str],
    *,
    session_factory: Callable[[], SessionLike] | None = None,
    shelf: ShelfLike | None = None,
) -> Program:
    """The whole program, window not yet shown, nothing yet looked for.

    Tests hand in a scripted session and shelf.
    """
    app = _application(argv)
    folder = paths.config_folder()
    kept = settings.load(folder)
    resources.speak(app, kept.language)
    appearance = Appearance(app, kept)
    app.setWindowIcon(QIcon(resources.pixmap("mark", resources.colour("accent"), 64)))
    past = Past(paths.past_folder())
    worker = Worker(
        session_factory or partial(_session, past),
        app,
        lambda: online(models),
    )
    alerts = Alerts(app)
    mark, file = Mark(paths.mark_file()), SettingsFile(folder, kept, app)
    looked = shelf or _shelf(kept)
    models = Models(
        worker,
        looked,
        alerts,
        kept,
        file.save,
        mark,
        app,
    )

    def keep_offline(wanted: bool) -> None:
        models.settings = replace(models.settings, offline=wanted)
        models.keep()

    def decline_card() -> None:
        models.settings = replace(models.settings, card_declined=True)
        models.keep()

    def keep_folders(changed: settings.Settings) -> None:
        models.settings = changed
        models.keep()
        looked.look_in(paths.library_folders(changed.folders), places.store(changed))
        models.start()

    watch = _Watch()
    models.loaded_changed.connect(watch.follow)
    worker.sample(watch)
    history = History(worker, partial(_store, past), app)
    chat = Chat(worker, models, alerts, history, app)
    conversations = Conversations(history, chat, parent=app)
    writing = Writing(worker, Counting(worker, models, parent=app), app)
    unsent = Throttle(UNSENT_MS, lambda: history.put_unsent(writing.unsent), app)
    writing.changed.connect(unsent.soon)
    history.unsent.connect(writing.restore)
    alerts.private = lambda: [*conversations.titles, *chat.texts, *writing.texts]
    presets = Presets(folder / "presets.toml", app)
    stats = Stats(chat, models, app)

    folders = Folders(worker, models, keep_folders, models)
    hub = Hub(worker, folders, models.settings.offline, keep_offline, parent=app)
    hub.fetched.connect(models.start)
    models.get_asked.connect(hub.open_for)
    models.resume_asked.connect(hub.repair)

    gpu = Gpu(worker, alerts, lambda: models.settings, decline_card, app)
    # torch is there by then, or its add-on has failed
    models.loaded_changed.connect(gpu.look)

    def closing() -> None:
        chat.close()
        unsent.now()
        conversations.close()
        models.keep()
        mark.clear()
        torch_addon.unmark()

    compare = Compare(worker, models, history, app)
    about = About(worker, lambda: online(models), built_for, release.place(), app)
    parts = Parts(
        about, chat, conversations, writing, presets, models, stats, alerts, hub, gpu, compare
    )
    window = Window(parts, closing)
    file.set_elsewhere.connect(window.set)
    geometry = Geometry(folder, window)
    geometry.follow_window(window)
    window.dialog_made.connect(geometry.follow_dialog)
    geometry.follow_dialog("hub", window.hub)
    geometry.follow_border("list", window.list_border)
    geometry.follow_border("sidebar", window.side_border)
    FoldersDialog(folders, window)
    window.sidebar.target.folders_asked.connect(folders.open)
    window.first_run.folders_asked.connect(folders.open)
    window.first_run.hub_asked.connect(hub.open)
    notifier = Notifier(window, models.settings)
    chat.answering_changed.connect(lambda on: notifier.begin() if on else None)
    chat.turn_ended.connect(lambda turn: notifier.end(chat.title, not turn.ended_early))
    window.used.connect(notifier.rest)
    models.settings_changed.connect(notifier.follow)
    models.settings_changed.connect(appearance.follow)
    return Program(
        *(app, window, worker, alerts, models, chat, stats, hub, gpu, folders, history),
        *(conversations, compare),
    )


def built_for() -> str:
    """What torch computes on beside the CPU."""
    from engine import devices

    return devices.built_for()


def online(models: Models) -> None:
    """Raises EngineError while nothing may be asked of the network."""
    require_online(Access(offline=models.settings.offline))


class _Watch:
    """The memory of the devices that the target is on, or will likely be, and main memory beside
    cards; read by the sampler."""

    def __init__(self) -> None:
        self._device = ""

    def follow(self, loaded: Loaded | None) -> None:
        """The target runs on another device, or none runs."""
        self._device = loaded.device if loaded is not None else ""

    def __call__(self) -> list[Room]:
        from engine.devices import likely, rooms

        device = self._device or likely()
        # layers of a target may lie in main memory, beside a card
        return rooms(device) + (rooms("cpu") if device == "cuda" else [])


def open_window(argv: Sequence[str], wanted: str = "") -> int:
    """Run the program until its window is closed; the exit code. Where it runs already, that
    window comes forward instead. It opens what is `wanted`, as `request` reads it."""
    crashes = Crashes(paths.log_folder())
    try:
        open_log(paths.ensure(paths.log_folder()))
        crashes.stand_ready()
    except OSError as error:
        return refuse(_application(argv), paths.closed(error))
    try:
        app = _application(argv)
        unforeseen = Unforeseen(crashes, app)
        unforeseen.install()
        try:
            instance = _instance(app)
            if not instance.claim(wanted):
                return 0
            program = build(argv)
        except EngineError as error:
            return refuse(app, error)
        except Exception as error:
            return unforeseen.end(error)
        tell_of_crashes(program.alerts, crashes)
        instance.called.connect(partial(answer_call, program))
        again: list[bool] = []
        program.gpu.restart_asked.connect(lambda: again.append(program.window.close()))
        program.window.show()
        program.begin()
        answer_call(program, wanted)
        code = program.app.exec()
        instance.hang_up()

        def end() -> None:
            instance.close()
            if again:
                _start_again()

        return leave(program, code, end)
    finally:
        crashes.stand_down()


def _instance(app: QApplication) -> Instance:
    """This copy among others. Raises EngineError."""
    try:
        return Instance(paths.data_folder(), app)
    except OSError as error:
        raise paths.closed(error) from error


def tell_of_crashes(alerts: Alerts, crashes: Crashes) -> None:
    """Have it said that an earlier start crashed, until the user has seen it; and let none of what
    stands in chats come into reports from now on."""
    crashes.private = alerts.private
    found = crashes.gather()
    if found is None:
        return
    alerts.stand(
        Reason(
            "crashed",
            "Slipstream ended unexpectedly the last time. The report on it holds nothing of your "
            "chats.",
            {"path": str(found)},
        )
    )
    alerts.closed.connect(lambda alert: crashes.see() if alert.is_about("crashed") else None)


def _start_again() -> None:
    """Start the packaged program anew, as one that has nothing to do with this one."""
    environment = {**os.environ, "PYINSTALLER_RESET_ENVIRONMENT": "1"}
    subprocess.Popen([sys.executable], env=environment, start_new_session=True)


def answer_call(program: Program, said: str) -> None:
    """Bring the window forward, and open in it what another start asks for."""
    come_forward(program.window)
    wanted = request.read(said)
    if isinstance(wanted, Path):
        program.models.choose_target(str(wanted))
    elif wanted is not None:
        program.conversations.open_named(wanted)
    elif said:
        asked = QCoreApplication.translate(
            "start", "Another start asked for what is neither a model's file or folder nor a chat."
        )
        program.alerts.show(asked)


def refuse(app: QApplication, error: EngineError) -> int:
    """Say in a small dialog why there is no window; the exit code."""
    log.error("%s", error.reason.text)
    kept = settings.load(paths.config_folder())
    resources.speak(app, kept.language)
    Appearance(app, kept)
    said = QMessageBox(QMessageBox.Icon.Warning, "Slipstream", resources.translate(error.reason))
    said.setTextFormat(Qt.TextFormat.PlainText)
    said.exec()
    return 1


def come_forward(window: QWidget) -> None:
    """Show the window over others, as far as the system lets it."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()


def leave(program: Program, code: int, last: Callable[[], object] = lambda: None) -> int:
    """End the threads, then do what comes `last`; where a job cannot be stopped in time, the
    process ends with it."""
    ended = program.worker.close(END_SECONDS, closing=program.history.close)
    last()
    if ended:
        return code
    log.warning("a job did not end in time")
    logging.shutdown()
    os._exit(code)


def open_log(folder: Path) -> None:
    """What goes wrong is written to the log file in `folder`: a windowed program has no console."""
    path = folder / LOG_NAME
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.replace(path.with_suffix(".old.log"))
    logging.basicConfig(
        stream=path.open("a", encoding="utf-8"),
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )
    # It tells every address it asks, also those that open a file to whoever knows them.
    logging.getLogger("httpx2").setLevel(logging.WARNING)


def _application(argv: Sequence[str]) -> QApplication:
    """The one application, dressed by the system's scheme and again when that changes."""
    held = QApplication.instance()
    app = held if isinstance(held, QApplication) else QApplication(list(argv) or [APP_ID])
    app.setApplicationName("Slipstream")
    app.setApplicationDisplayName("Slipstream")
    QGuiApplication.setDesktopFileName(APP_ID)
    if not app.styleSheet():  # not dressed yet: setting a style polishes every widget
        app.setStyle("Fusion")
    return app


def _store(past: Past) -> StoreLike:
    """Called in the history lane."""
    paths.ensure(paths.data_folder())
    return Store(paths.history_file(), past=past)


def _session(past: Past) -> SessionLike:
    """The real session. Called in the model lane, where torch may be imported."""
    from engine.session import Session

    sample = resources.sample_text()
    folder = paths.ensure(paths.cache_folder())
    return Session(folder, sample=sample, past=past, learned=paths.learned_file())


def _shelf(kept: settings.Settings) -> Shelf:
    index = Index(paths.index_file())
    folders = paths.library_folders(kept.folders)
    return Shelf(folders, places.store(kept), guidance_table(), index)
