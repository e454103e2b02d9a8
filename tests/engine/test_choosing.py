"""What the measuring of Auto makes of its lines: nothing is counted that is not in them."""

from tests.measure.choosing import AUTO, DRAFT, NGRAM, NONE, OTHER, SUFFIX, Tables

WAYS = (NONE, NGRAM, SUFFIX, DRAFT, OTHER, AUTO)
PASS, STEP = 0.1, 0.03
KIND = ["code"]


def a_round(drafted=0, accepted=0, drafter="", steps=None):
    seconds = (drafted if steps is None else steps) * STEP if drafter == "model" else 0.0
    return {
        "drafted": drafted,
        "accepted": accepted,
        "emitted": accepted + 1,
        "draft_seconds": seconds,
        "verify_seconds": PASS,
        "drafter": drafter,
    }


def run(way, rounds, rate=10.0, ids=range(8)):
    return {
        "kind": "run",
        "way": way,
        "prompt": 0,
        "again": 0,
        "ids": list(ids),
        "rate": rate,
        "rounds": rounds,
    }


def lines(auto=10.0, ids=range(8), chosen=7):
    """A model that is always right, and lookups that find nothing."""
    draft = [a_round(chosen, chosen, "model")] * (8 // (chosen + 1))
    runs = [run(way, [a_round()] * 8) for way in WAYS]
    runs[WAYS.index(DRAFT)] = run(DRAFT, draft)
    runs[WAYS.index(AUTO)] = run(AUTO, draft, auto, ids)
    runs[WAYS.index(OTHER)] = run(OTHER, [a_round(7, 7, "model")])
    nothing = [{"drafted": 0, "right": 0}] * 8
    right = [{"drafted": 1, "right": 1}] * 8
    drafts = {NGRAM: nothing, SUFFIX: nothing, "chain": nothing, DRAFT: right, OTHER: right}
    times = dict.fromkeys((NGRAM, SUFFIX, DRAFT, OTHER), 1.0)
    return [
        *runs,
        {"kind": "trace", "prompt": 0, "drafts": drafts},
        {"kind": "predicted", "times": times},
    ]


def said(found, capsys):
    code = Tables(found, KIND).say()
    return code, capsys.readouterr().out


def test_where_all_is_level_every_limit_is_kept(capsys):
    code, text = said(lines(), capsys)
    assert code == 0
    assert "differing ids: 0\n" in text
    assert "1.00 of the best |" in text
    assert "missed" not in text


def test_an_id_that_differs_is_counted(capsys):
    code, text = said(lines(ids=[0, 1, 2, 3, 4, 5, 6, 9]), capsys)
    assert code == 1
    assert "differing ids: 1 (missed)" in text


def test_an_answer_that_is_too_short_differs(capsys):
    assert "differing ids: 3 (missed)" in said(lines(ids=range(5)), capsys)[1]


def test_the_choices_are_told_apart_from_the_machines_pace(capsys):
    """Eight tokens in one round of seven steps and a pass, as those of the draft."""
    text = said(lines(auto=5.0), capsys)[1]
    assert "by the median cost of each kind of round: code 1.00\n" in text
    slow = [line | {"rounds": [a_round()] * 8} if line.get("way") == AUTO else line
            for line in lines()]  # fmt: skip
    assert f"round: code {(7 * STEP + PASS) / (8 * PASS):.2f}\n" in said(slow, capsys)[1]


def test_a_slow_auto_misses(capsys):
    code, text = said(lines(auto=9.0), capsys)
    assert code == 1
    assert "0.90 of the best (missed)" in text


def test_lengths_that_were_too_short_are_told_by_how_much_they_cost(capsys):
    """Eight tokens in 1 round of 7 drafts take 0.1 + 0.21 s; in 4 of one, 0.52 s."""
    code, text = said(lines(chosen=1), capsys)
    assert code == 1
    assert "draft: its lengths cost +67.7% against the best in hindsight, draft 7 (missed)" in text


def test_a_wrong_prediction_misses(capsys):
    found = lines()
    found[-1]["times"][DRAFT] = 1.3
    code, text = said(found, capsys)
    assert code == 1
    assert "draft: 1.30 times plain predicted, 1.00 measured, +30% (missed)" in text
