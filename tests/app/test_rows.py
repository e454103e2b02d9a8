"""Rows of the list of drafts: their order, and what each says of a pair."""

from pathlib import Path

import pytest

from app.viewmodels import words
from app.viewmodels.rows import Drafts, Row, best_draft, draft_rows, target_rows
from app.viewmodels.shelf import Gettable
from engine.errors import Reason
from engine.fit import GIB, Fit, Pair, Room, judge
from engine.guidance import Level, Verdict
from engine.library import own_head
from engine.library.catalogue import Offer
from engine.library.scan import Entry
from engine.measured import LOOKUPS, Measurement
from tests.fakes import DRAFT, FOREIGN, TARGET, VERDICTS, entries, info

TABLE = Reason("published_sizes", "Largest useful draft: 7B: 1B")
ADVICE = Verdict(Level.GOOD, VERDICTS[DRAFT].reason, TABLE)


def measurement(rate: float, accepted: float | None = 0.74, plain: float | None = 48.0):
    return Measurement(rate, accepted, 1_234, "2026-12-01", "use", plain)


def offer(repository: str, level: Level = Level.CAUTION, parameters: int | None = 1_540_000_000):
    reason = Reason("somewhat_smaller", "Caution: only 5 times smaller")
    if level is Level.REFUSED:
        reason = Reason("head_of", "Head for This: cannot be used yet")
    kind = "eagle3" if level is Level.REFUSED else "model"
    name = repository.split("/")[1]
    found = Offer(repository, name, kind, parameters, "apache-2.0", "https://source")
    model = None if level is Level.REFUSED else info(Path(repository), parameters or 0)
    return Gettable(found, Verdict(level, reason, TABLE), model)


def shown(**known) -> dict[str, Row]:
    known = {"entries": entries(), "chosen": "none", "verdicts": {DRAFT: ADVICE}, **known}
    return {row.key: row for row in draft_rows(Drafts(**known)) if row.key}


def headings(**known) -> list[str]:
    rows = draft_rows(Drafts(**{"entries": entries(), "chosen": "none", **known}))
    return [row.key or row.name for row in rows]


@pytest.mark.parametrize(
    ("predicted", "rate", "said"),
    [
        ({}, None, ""),
        ({"ngram": 1.24}, None, "; about 1.2 times plain, predicted"),
        (
            {"ngram": 1.24, "suffix": 0.8, str(DRAFT): 1.66},
            None,
            "; about 1.7 times plain, predicted",
        ),
        ({"suffix": 0.8}, None, "; about 1.0 times plain, predicted"),
        ({"ngram": 1.24}, 96.0, "; about 2.0 times plain, predicted"),
        ({str(FOREIGN): 5.0}, None, ""),
    ],
)
def test_auto_is_predicted_by_the_best_that_it_holds(predicted, rate, said):
    tried = {} if rate is None else {str(DRAFT): measurement(rate)}
    room = fitting("fits")
    row = shown(predicted=predicted, measured=tried, fits=room)["auto"]
    assert row.detail.removeprefix("Whatever is fastest, round by round") == said
    assert "predicted" not in shown(predicted=predicted, measured={
        "auto": measurement(60.0)})["auto"].detail  # fmt: skip


def test_the_targets_own_head_has_a_row_where_it_has_one():
    assert "mtp" not in shown()
    able = Verdict(Level.GOOD, own_head.GOOD)
    row = shown(own_head=able, chosen="mtp")["mtp"]
    assert (row.name, row.usable, row.checked) == ("Own head (MTP)", True, True)
    tried = shown(own_head=able, measured={"mtp": measurement(82.4)})["mtp"]
    assert (tried.word, tried.detail) == ("Good:", "1.7 times plain, 74 % accepted")
    refused = shown(own_head=Verdict(Level.REFUSED, own_head.IN_GGUF))["mtp"]
    assert (refused.usable, refused.word) == (False, "Built in:")
    assert refused.detail == "cannot be read out of GGUF files yet"


@pytest.mark.parametrize(
    ("rate", "word", "detail", "tone"),
    [
        (82.4, "Good:", "1.7 times plain, 74 % accepted", "good"),
        (50.0, "", "1.04 times plain, 74 % accepted", "plain"),
        (41.0, "Slower here:", "0.9 times plain", "caution"),
    ],
)
def test_a_measured_pair_says_so_and_its_advice_moves_to_the_tooltip(rate, word, detail, tone):
    row = shown(measured={str(DRAFT): measurement(rate)})[str(DRAFT)]
    assert (row.word, row.detail, row.tone) == (word, detail, tone)
    assert row.aside == f"{rate:.0f} tok/s"
    lines = row.tooltip.splitlines()
    assert lines[0] == "Qwen2.5-Coder 0.5B Instruct"
    assert (
        "Measured in use over 1,234 tokens, last on 2026-12-01; 48 tok/s without a draft" in lines
    )
    assert "Good: 15 times smaller, same vocabulary" in lines
    assert lines[-1] == "Largest useful draft: 7B: 1B"


def test_without_a_plain_rate_the_advice_stays_and_says_what_was_accepted():
    row = shown(measured={str(DRAFT): measurement(82.4, plain=None)})[str(DRAFT)]
    said = (row.word, row.detail)
    assert said == ("Good:", "15 times smaller, same vocabulary; 74 % accepted")
    assert (row.tone, row.aside) == ("good", "82 tok/s")


def test_what_was_never_tried_has_a_dash_and_its_advice():
    rows = shown()
    assert {rows[key].aside for key in ("none", "ngram", str(DRAFT))} == {"–"}
    assert rows[str(DRAFT)].word == "Good:"
    assert rows["ngram"].detail == "Copies earlier text; needs no memory"
    names = {key: rows[key].name for key in LOOKUPS}
    assert list(names.values()) == [
        "Repeats from the chat", "Repeats from past answers", "Repeats from all chats",
    ]  # fmt: skip
    assert len({rows[key].detail for key in LOOKUPS}) == 3


def test_plain_decoding_and_repeats_have_their_speeds():
    rows = shown(
        measured={"none": measurement(48.0, None, None), "ngram": measurement(60.0, accepted=0.4)}
    )
    assert rows["none"].aside == "48 tok/s"
    assert (rows["ngram"].aside, rows["ngram"].tone) == ("60 tok/s", "good")
    assert rows["ngram"].detail == "1.2 times plain, 40 % accepted"
    assert "Copies earlier text; needs no memory" in rows["ngram"].tooltip


def test_measured_drafts_come_first_by_speed_and_unjudged_ones_last():
    paths = [Path(f"/models/{name}") for name in "abcde"]
    found = [Entry(path.name, path, info(path, 10**9), None) for path in paths]
    levels = dict(zip(paths, (Level.WARN, Level.CAUTION, Level.GOOD, Level.GOOD), strict=False))
    order = headings(
        entries=found,
        verdicts={path: Verdict(level, Reason("x", "Said")) for path, level in levels.items()},
        measured={"/models/a": measurement(50), "/models/d": measurement(60)},
    )
    assert [Path(key).name for key in order] == ["auto", "none", *LOOKUPS, "d", "a", "c", "b", "e"]


@pytest.mark.parametrize(
    ("free", "words", "tone"),
    [
        (12, "Fits, ", "good"),
        (8.9, "Tight, 0.", "caution"),
        (4, "Does not fit, ", "bad"),
        (None, "Unknown: this device does not tell", "caution"),
    ],
)
def test_a_row_says_whether_the_pair_fits(free, words, tone):
    room = Room("cpu", "Main memory", 16 * GIB, None if free is None else round(free * GIB))
    target = info(TARGET, hidden_size=3584, intermediate_size=18_944)
    draft = info(DRAFT, 494_000_000, hidden_size=896)
    fit = judge(Pair(target, "int8", 1_024, draft, "int8"), room)
    row = shown(fits={str(DRAFT): fit})[str(DRAFT)]
    assert row.fit.startswith(words)
    assert row.fit_tone == tone
    assert shown(fits={str(DRAFT): fit}, verdicts={})[str(DRAFT)].fit == ""


def test_translated_drafts_stand_below_a_heading_of_their_own_with_advice_and_speed():
    known = {"verdicts": {DRAFT: ADVICE, FOREIGN: VERDICTS[FOREIGN], TARGET: VERDICTS[TARGET]}}
    order = headings(**known, offers=[offer("o/Small")])
    assert order[: order.index("Cannot draft for this target")] == [
        *("auto", "none", *LOOKUPS, str(DRAFT)),
        *("Other vocabulary: translated", str(FOREIGN)),
        *("Drafts to get", "o/Small"),
    ]
    row = shown(**known)[str(FOREIGN)]
    assert (row.word, row.detail, row.usable) == ("Good:", "56 times smaller", True)
    measured = {str(FOREIGN): measurement(82.4)}
    assert headings(**known, measured=measured)[4:6] == order[4:6]
    row = shown(**known, measured=measured)[str(FOREIGN)]
    assert (row.word, row.detail) == ("Good:", "1.7 times plain, 74 % accepted")
    assert "Other vocabulary: translated" not in headings(verdicts={DRAFT: ADVICE})


def test_what_could_be_fetched_stands_below_with_size_licence_and_a_button():
    order = headings(
        verdicts={DRAFT: ADVICE, FOREIGN: VERDICTS[FOREIGN], TARGET: VERDICTS[TARGET]},
        offers=[offer("o/Small"), offer("o/Head", Level.REFUSED)],
    )
    get, cannot = order.index("Drafts to get"), order.index("Cannot draft for this target")
    assert order.index(str(DRAFT)) < get
    assert order[get + 1 : cannot] == ["o/Small"]
    assert order[-1] == "o/Head"
    rows = shown(offers=[offer("o/Small"), offer("o/Head", Level.REFUSED)])
    row = rows["o/Small"]
    assert (row.word, row.detail) == ("Caution:", "only 5 times smaller; 3.1\u00a0GB, apache-2.0")
    assert (row.action, row.usable, row.aside) == ("get", False, "")
    head = rows["o/Head"]
    assert (head.word, head.detail) == ("Head for This:", "cannot be used yet")
    assert (head.action, head.tone) == ("", "refused")


def test_an_offer_of_unknown_size_says_its_licence():
    row = shown(offers=[offer("o/Some", parameters=None)])["o/Some"]
    assert row.detail == "only 5 times smaller; apache-2.0"


def test_nothing_is_offered_to_a_target_that_cannot_be_drafted_for():
    refusal = Reason("recurrent_target", "This model keeps a running state.")
    rows = shown(offers=[offer("o/Small")], refusal=refusal)
    assert [row.key for row in rows.values() if row.tone != "refused"] == ["none"]
    assert "o/Small" not in rows


@pytest.mark.parametrize(
    ("code", "fetched", "action"),
    [
        ("download_unfinished", False, "resume"),
        ("file_missing", False, ""),
        ("file_missing", True, "repair"),
    ],
)
def test_a_download_can_be_resumed_and_what_it_brought_repaired(code, fetched, action):
    path = Path("/models/half")
    problem = Reason(code, "The download of {file} has not finished.", {"file": "a"})
    row = shown(entries=[Entry("Half", path, None, problem, fetched)])[str(path)]
    assert (row.action, row.usable, row.tone) == (action, False, "refused")
    assert row.detail == "The download of a has not finished."


def test_what_cannot_run_here_says_so_with_its_size_in_both_lists():
    """MEM-2."""
    path = Path("/models/awq")
    problem = Reason("cannot_run", "Cannot run on this computer: needs {p}.", {"p": "gptqmodel"})
    entry = Entry("Big AWQ", path, info(path, 7 * 10**9), problem)
    for rows in (target_rows([entry], ""), tuple(shown(entries=[entry]).values())):
        (row,) = (row for row in rows if row.key == str(path))
        assert (row.word, row.detail) == ("Cannot run on this computer:", "needs gptqmodel.")
        assert row.aside == words.megabytes(entry.info.file_bytes)
        assert "7.0 billion parameters" in row.tooltip
        assert not row.usable


def fitting(word: str) -> dict[str, Fit]:
    gib = {"fits": 12, "tight": 8.9, "no": 4}[word]
    room = Room("cpu", "Main memory", 16 * GIB, round(gib * GIB))
    target = info(TARGET, hidden_size=3584, intermediate_size=18_944)
    draft = info(DRAFT, 494_000_000, hidden_size=896)
    return {str(DRAFT): judge(Pair(target, "int8", 1_024, draft, "int8"), room)}


@pytest.mark.parametrize(
    ("level", "word", "rate", "chosen"),
    [
        (Level.GOOD, "fits", None, True),
        (Level.CAUTION, "tight", None, True),
        (Level.GOOD, "no", None, False),
        (Level.WARN, "fits", None, False),
        (Level.REFUSED, "fits", None, False),
        (Level.WARN, "fits", 60.0, True),  # tried here, and faster than plain
        (Level.GOOD, "fits", 41.0, False),
    ],
)
def test_auto_holds_the_best_model_that_fits_and_is_not_advised_against(level, word, rate, chosen):
    known = Drafts(
        entries(),
        "none",
        verdicts={DRAFT: Verdict(level, Reason("x", "Said"))},
        measured={} if rate is None else {str(DRAFT): measurement(rate)},
        fits=fitting(word),
    )
    assert best_draft(known) == (str(DRAFT) if chosen else "")


def test_auto_stands_first_with_what_it_does_and_what_it_did():
    assert headings()[0] == "auto"
    row = shown()["auto"]
    assert (row.name, row.usable) == ("Auto", True)
    assert row.detail == "Whatever is fastest, round by round"
    assert shown(measured={"auto": measurement(96.0)})["auto"].word == "Good:"
    refusal = Reason("recurrent_target", "No")
    assert not shown(refusal=refusal)["auto"].usable


def test_a_pair_not_tried_says_what_is_predicted_of_it():
    predicted = {str(DRAFT): 1.42, "ngram": 1.1}
    rows = shown(predicted=predicted)
    told = "15 times smaller, same vocabulary; about 1.4 times plain, predicted"
    assert (rows[str(DRAFT)].detail, rows[str(DRAFT)].aside) == (told, "–")
    assert rows["ngram"].detail.endswith("; about 1.1 times plain, predicted")
    measured = {str(DRAFT): measurement(82.4)}
    assert "predicted" not in shown(predicted=predicted, measured=measured)[str(DRAFT)].detail
