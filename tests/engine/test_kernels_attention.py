"""Attention by buckets: right, and a row's bits follow from its position and the text alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.cache import Buffers
from engine.kernels import attention as ours
from engine.kernels.attention import BUCKET, NAME, register, segments
from engine.kernels.rows import RowCounts
from tests.rowwise import HEADS, KINDS, attention, attention_failures, matrix, visible


def reference(query, keys, values, start, *, window=None, softcap=None, s_aux=None):
    """In float64, all keys at once."""
    _, heads, rows, size = query.shape
    group = heads // keys.shape[1]
    keys, values = (x.repeat_interleave(group, 1).double() for x in (keys, values))
    scores = query.double() @ keys.transpose(-1, -2) * size**-0.5
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    places = torch.arange(start, start + rows)[:, None], torch.arange(keys.shape[2])[None]
    scores = scores.masked_fill(~visible(window)(0, 0, *places), float("-inf"))
    if s_aux is not None:
        scores = torch.cat([scores, s_aux.double().view(1, -1, 1, 1).expand(1, -1, rows, 1)], -1)
    weights = scores.softmax(-1)[..., : keys.shape[2]]
    return (weights @ values)[0].transpose(0, 1)


def text(heads, group, size, *, start, rows, room=3 * BUCKET):
    """Query rows of the positions from `start`, and the keys and values of a longer text."""
    keys, values = (matrix((1, heads, room, size), seed) for seed in (1, 2))
    return matrix((1, heads * group, rows, size), 3), keys, values


def more_of(kind, heads, group):
    return {"s_aux": matrix((heads * group,), 4)} if kind == "sinks" else dict(KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [*HEADS, (2, 7, 16), (4, 1, 8)])
@pytest.mark.parametrize("start", [0, BUCKET - 3, BUCKET, 2 * BUCKET - 1])
def test_rows_are_what_float64_gives(kind, shape, start):
    query, keys, values = text(*shape, start=start, rows=6)
    more = more_of(kind, *shape[:2])
    found = attention(query, keys, values, start, 6, **more)
    expected = reference(query, keys, values, start, **more)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_a_row_has_the_same_bits_in_any_block():
    assert attention_failures() == []


@pytest.mark.parametrize("shape", HEADS)
def test_the_room_behind_and_what_was_left_in_it_do_not_show(shape):
    """It grows with the text's history, and taken-back drafts stay in it."""
    start = BUCKET - 9
    query, keys, values = text(*shape, start=start, rows=18, room=2 * BUCKET)
    expected = attention(query, keys, values, start, 18)
    for room in (2 * BUCKET, 3 * BUCKET, 7 * BUCKET):
        used = torch.zeros(1, shape[0], room, shape[2])
        other = torch.full_like(used, 1e3)
        for held, states in ((used, keys), (other, values)):
            held[:, :, : start + 18] = states[:, :, : start + 18]
        assert torch.equal(attention(query, used, other, start, 18), expected), room


def test_a_row_of_nan_stays_alone():
    query, keys, values = text(2, 2, 16, start=BUCKET - 4, rows=8)
    expected = attention(query, keys, values, BUCKET - 4, 8)
    query[:, :, 3] = float("nan")
    found = attention(query, keys, values, BUCKET - 4, 8)
    assert found[3].isnan().all()
    others = [0, 1, 2, 4, 5, 6, 7]
    assert torch.equal(found[others], expected[others])


@given(
    start=st.integers(0, 5 * BUCKET),
    rows=st.integers(1, 300),
    window=st.sampled_from([None, 1, 5, BUCKET, BUCKET + 1, 200]),
)
def test_segments_cover_the_rows_by_bucket_and_hold_every_key_a_row_sees(start, rows, window):
    found = segments(
        q_length=rows, q_offset=start, kv_offset=0, mask_function=visible(window), extra="ignored"
    )
    assert [part.start for part in found] == [0, *[part.stop for part in found[:-1]]]
    assert found[-1].stop == rows
    for part in found:
        first, last = start + part.start, start + part.stop - 1
        assert first // BUCKET == last // BUCKET == part.last // BUCKET - 1
        assert part.first % BUCKET == 0
        # the first key is that of the bucket's first row: the same for whoever is in the bucket
        border = first // BUCKET * BUCKET
        assert part.first == (
            0 if window is None else max(border - window + 1, 0) // BUCKET * BUCKET
        )
        sees = part.mask == 0
        for row in {first, last}:
            expected = range(0 if window is None else max(row - window + 1, 0), row + 1)
            seen = (sees[row - first].nonzero()[:, 0] + part.first).tolist()
            assert seen == list(expected)


def test_keys_that_were_dropped_are_counted_off():
    (part,) = segments(
        q_length=3, q_offset=4 * BUCKET, kv_offset=2 * BUCKET, mask_function=visible(40)
    )
    assert (part.first, part.last) == (BUCKET, 3 * BUCKET)


@pytest.mark.parametrize("lengths", [[40] * 30, [1] * 20 + [300] * 4, [700, 5, 900]])
def test_a_window_that_dropped_its_oldest_keys_gives_the_same_bits(lengths):
    """Buffers that forget against keys that are all there."""
    window, size, total = 100, 16, sum(lengths)
    query, keys, values = text(2, 2, size, start=0, rows=total, room=-(-total // BUCKET) * BUCKET)
    buffers = Buffers(window)
    at = 0
    for length in lengths:
        here = slice(at, at + length)
        if buffers.is_initialized:
            buffers.drop_oldest()
        mask = segments(
            q_length=length, q_offset=at, kv_offset=buffers.first, mask_function=visible(window)
        )
        held = buffers.update(keys[:, :, here], values[:, :, here])
        found, _ = ours.attend(None, query[:, :, here], *held, mask, scaling=size**-0.5)
        expected = attention(query[:, :, here], keys, values, at, length, window=window)
        assert torch.equal(found[0], expected)
        at += length
    assert buffers.first > 0
    assert buffers.keys.shape[2] < total


def test_counts_are_tried_and_where_none_agree_rows_are_computed_one_by_one(monkeypatch):
    """With a product that minds how many rows it is given."""
    real = torch.bmm

    def by_count(a, b):
        return real(a, b) * (1 + 1e-6 * (a.shape[1] > 2))

    shape = (2, 2, 24)
    query, keys, values = text(*shape, start=BUCKET - 5, rows=10)
    expected = attention(query, keys, values, BUCKET - 5, 1)
    monkeypatch.setattr(torch, "bmm", by_count)
    ours._counts.cache_clear()
    try:
        # one row of two heads goes the other way, so it is padded
        assert 1 not in ours._counts(*shape).good
        rows = attention(query, keys, values, BUCKET - 5, 10)
        assert torch.equal(rows, attention(query, keys, values, BUCKET - 5, 1))
        torch.testing.assert_close(rows, expected)
        monkeypatch.setattr(ours, "agreeing", lambda *_: RowCounts([200]))
        ours._counts.cache_clear()
        assert ours._counts(*shape).good == (1,)
    finally:
        ours._counts.cache_clear()


def test_it_may_be_registered_again():
    from transformers import AttentionInterface

    register()
    register()
    assert AttentionInterface()[NAME] is ours.attend


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 6, 128), (2, 7, 64), (4, 1, 256), (8, 4, 128), (8, 3, 80)])
@pytest.mark.parametrize("bucket", [1, 3, 7, 15, 31])
def test_rows_of_real_shapes_are_independent_at_long_texts(shape, bucket):
    start = bucket * BUCKET - 10
    query, keys, values = text(*shape, start=start, rows=34, room=(bucket + 1) * BUCKET)
    alone = attention(query, keys, values, start, 1)
    for block in (2, 3, 5, 8, 13, 17, 34):
        assert torch.equal(attention(query, keys, values, start, block), alone), block
