"""The lanes: order, stopping, failing, closing."""

import gc
import threading
import time
import weakref

import pytest

from app.lanes import Job
from app.worker import Worker
from engine.api import Chunk, Drafting, Finish, Message, Sampling
from engine.errors import LoadError, OutOfMemory
from tests.fakes import TARGET, ScriptedSession, chunks_of


@pytest.fixture
def lanes(qtbot):
    made = []

    def making(session):
        worker = Worker(lambda: session)
        made.append(worker)
        return worker

    yield making
    for worker in made:
        worker.close()


def reply(worker):
    worker.reply([], Sampling(), Drafting())


def test_a_burst_keeps_its_order_and_makes_few_updates(qtbot, lanes):
    chunks = [Chunk(text=f"{number} ") for number in range(5_000)]
    worker = lanes(ScriptedSession(chunks))
    updates = []
    worker.pieces.connect(updates.append)
    with qtbot.waitSignal(worker.finished):
        reply(worker)
    shown = "".join(chunk.text for update in updates for chunk in update)
    assert shown == "".join(chunk.text for chunk in chunks)
    assert len(updates) < 60


def test_the_session_lives_in_one_thread_that_is_not_the_windows(qtbot, lanes):
    session = ScriptedSession(chunks_of(["a"]))
    worker = lanes(session)
    ended = []
    worker.finished.connect(lambda job, result: ended.append(job))
    worker.load_target(TARGET)
    worker.choose_draft("ngram")
    reply(worker)
    qtbot.waitUntil(lambda: len(ended) == 3)
    assert ended == [Job.LOAD, Job.DRAFT, Job.REPLY]
    assert session.threads == {"model"}


def test_pieces_come_before_the_end_of_their_answer(qtbot, lanes):
    worker = lanes(ScriptedSession(chunks_of(["a", "b"])))
    events = []
    worker.pieces.connect(lambda chunks: events.extend(chunk.text for chunk in chunks))
    worker.finished.connect(lambda job, result: events.append(job))
    with qtbot.waitSignal(worker.finished):
        reply(worker)
    assert events == ["a", "b", "", Job.REPLY]


def test_stop_is_prompt_and_nothing_comes_after_it(qtbot, lanes):
    session = ScriptedSession([Chunk(text="x") for _ in range(10_000)], pause=0.002)
    worker = lanes(session)
    got = []
    worker.pieces.connect(got.extend)
    reply(worker)
    qtbot.waitUntil(lambda: len(got) >= 20)
    with qtbot.waitSignal(worker.finished, timeout=500):
        worker.stop()
    assert got[-1].finish is Finish.CANCELLED
    count = len(got)
    qtbot.wait(50)
    assert len(got) == count


def test_stop_ends_loading_without_an_error(qtbot, lanes):
    session = ScriptedSession()
    session.load_hold.clear()
    worker = lanes(session)
    failures = []
    worker.failed.connect(lambda job, reason: failures.append(reason))
    with qtbot.waitSignal(worker.moved):
        worker.load_target(TARGET)
    with qtbot.waitSignal(worker.finished, timeout=500) as ended:
        worker.stop()
    assert ended.args == [Job.LOAD, None]
    assert not failures


def test_stop_ends_what_runs_and_the_answer_that_waits_but_no_choice(qtbot, lanes):
    session = ScriptedSession(chunks_of(["a"]))
    session.load_hold.clear()
    worker = lanes(session)
    ended = []
    worker.finished.connect(lambda job, result: ended.append((job, result)))
    worker.load_target(TARGET)
    worker.choose_draft("ngram")
    reply(worker)
    worker.stop()
    qtbot.waitUntil(lambda: len(ended) == 3)
    assert ended == [(Job.LOAD, None), (Job.DRAFT, "ngram"), (Job.REPLY, None)]
    assert session.choices == ["ngram"]
    assert not session.asked


def test_an_answer_is_stopped_alone(qtbot, lanes):
    session = ScriptedSession(chunks_of(["a"]))
    session.load_hold.clear()
    worker = lanes(session)
    ended = []
    worker.finished.connect(lambda job, result: ended.append(job))
    worker.load_target(TARGET)
    reply(worker)
    worker.stop_reply()
    session.load_hold.set()
    qtbot.waitUntil(lambda: len(ended) == 2)
    assert session.loads == [TARGET]
    assert not session.asked


def test_a_failure_arrives_with_its_code_and_the_lane_goes_on(qtbot, lanes):
    session = ScriptedSession(
        [OutOfMemory("out_of_memory", "{gib} GiB were missing.", gib=1)], chunks_of(["next"])
    )
    worker = lanes(session)
    with qtbot.waitSignal(worker.failed) as failed:
        reply(worker)
    job, reason = failed.args
    assert (job, reason.code, reason.text) == (
        Job.REPLY,
        "out_of_memory",
        "1 GiB were missing.",
    )
    with qtbot.waitSignal(worker.finished):
        reply(worker)


def test_an_error_nobody_foresaw_becomes_a_sentence(qtbot, lanes):
    worker = lanes(ScriptedSession([RuntimeError("mat1 and mat2")]))
    with qtbot.waitSignal(worker.failed) as failed:
        reply(worker)
    assert failed.args[1].code == "unforeseen"
    assert "RuntimeError: mat1 and mat2" in failed.args[1].text


def test_a_failure_keeps_nothing_of_the_frames_it_passed(qtbot, lanes):
    class Tensor:
        pass

    kept = []

    class Session(ScriptedSession):
        def reply(self, *args, **kwargs):
            tensor = Tensor()
            kept.append(weakref.ref(tensor))
            raise OutOfMemory("out_of_memory", "no memory")
            yield tensor

    worker = lanes(Session())
    with qtbot.waitSignal(worker.failed):
        reply(worker)
    assert kept[0]() is None


def test_closing_while_it_answers_ends_the_threads(qtbot, lanes):
    session = ScriptedSession([Chunk(text="x") for _ in range(100_000)], pause=0.001)
    worker = lanes(session)
    with qtbot.waitSignal(worker.pieces):
        reply(worker)
    began = time.monotonic()
    assert worker.close()
    assert time.monotonic() - began < 2
    assert session.closed
    assert "model" not in {thread.name for thread in threading.enumerate()}


def test_a_job_that_cannot_be_stopped_does_not_hold_up_closing(qtbot, lanes):
    begun, held = threading.Event(), threading.Event()

    class Session(ScriptedSession):
        def load_target(self, path, *, precision, pair, progress, stopped):
            begun.set()
            held.wait(10)
            raise LoadError("late", "late")

    worker = lanes(Session())
    worker.load_target(TARGET)
    assert begun.wait(5)
    began = time.monotonic()
    assert not worker.close(0.2)
    assert time.monotonic() - began < 1
    held.set()


def test_after_closing_nothing_is_started(qtbot, lanes):
    session = ScriptedSession(chunks_of(["a"]))
    worker = lanes(session)
    worker.close()
    reply(worker)
    qtbot.wait(50)
    assert not session.asked


def test_downloads_do_not_wait_for_looking(qtbot, lanes):
    worker = lanes(ScriptedSession())
    release = threading.Event()
    worker.look(Job.SCAN, lambda report, stopped: release.wait(5))
    with qtbot.waitSignal(worker.finished, timeout=1_000) as ended:
        worker.fetch(lambda report, stopped: "file")
    assert ended.args == [Job.FETCH, "file"]
    release.set()


def test_an_answer_goes_on_where_that_is_asked_for(qtbot, lanes):
    session = ScriptedSession(chunks_of(["a"]), chunks_of(["b"]))
    worker = lanes(session)
    for resume in (True, False):
        with qtbot.waitSignal(worker.finished):
            worker.reply([Message("assistant", "x")], Sampling(), Drafting(), resume=resume)
    assert session.resumed == [True, False]


def test_room_is_made_with_the_session_in_the_model_lane(qtbot, lanes):
    session = ScriptedSession()
    worker = lanes(session)
    with qtbot.waitSignal(worker.finished) as ended:
        worker.make_room(lambda session, _: (threading.current_thread().name, session))
    assert ended.args == [Job.ROOM, ("model", session)]


def test_a_loaded_model_is_not_looked_through_for_garbage(qtbot, lanes):
    """Each look would stop the window too; one that is replaced comes into sight again."""
    in_sight = []

    class Session(ScriptedSession):
        def load_target(self, *args, **options):
            in_sight.append(gc.get_freeze_count())
            self.weights = [[number] for number in range(5_000)]
            return super().load_target(*args, **options)

        def choose_draft(self, *args, **options):
            in_sight.append(gc.get_freeze_count())
            super().choose_draft(*args, **options)

    session = Session()
    worker = lanes(session)
    for load in (worker.load_target, worker.choose_draft):
        with qtbot.waitSignal(worker.finished):
            load(TARGET)
        assert gc.get_freeze_count() > 5_000
        assert not any(one is session.weights for one in gc.get_objects())
    assert in_sight == [0, 0]
    session.load_error = LoadError("broken", "broken")
    with qtbot.waitSignal(worker.failed):
        worker.load_target(TARGET)
    assert gc.get_freeze_count() > 5_000
    gc.unfreeze()
