"""Row counts: what is probed is what agrees, and rows are padded or split to no others."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.rows import RowCounts, agreeing

GOOD = st.sets(st.integers(1, 40), min_size=1, max_size=6)


def product(x):
    """Each row's own sum, whatever is beside it."""
    return x.double().sum(-1, keepdim=True).float()


@given(good=GOOD, rows=st.integers(1, 130))
def test_parts_cover_the_rows_and_are_padded_to_good_counts(good, rows):
    counts = RowCounts(good)
    parts = counts.parts(rows)
    assert sum(count for count, _ in parts) == rows
    assert all(0 < count <= room and room in good for count, room in parts)
    # no more padding than one part needs
    assert all(count == room for count, room in parts[:-1])


@given(good=GOOD, rows=st.integers(1, 130))
def test_only_good_counts_are_computed_and_the_rows_come_back_in_order(good, rows):
    computed = []
    x = torch.arange(3.0 * rows).view(rows, 3)
    found = RowCounts(good).run(lambda part: computed.append(len(part)) or product(part), x)
    assert torch.equal(found, product(x))
    assert set(computed) <= good


def test_the_smallest_good_count_is_taken():
    counts = RowCounts([16, 4, 2])
    assert [counts.padded(rows) for rows in (1, 2, 3, 5, 16, 17)] == [2, 2, 4, 16, 16, None]


def test_counts_that_sum_otherwise_are_left_out():
    def by_count(x):
        return product(x) * (1 + 1e-6 * (len(x) in (2, 7)))

    assert agreeing(by_count, (40,), range(1, 10)).good == (1, 3, 4, 5, 6, 8, 9)


def test_counts_at_which_a_rows_place_matters_are_left_out():
    """As where the last rows of a block go another way."""

    def by_place(x):
        out = product(x)
        if len(x) > 4:
            out[-1] *= 1 + 1e-6
        return out

    assert agreeing(by_place, (40,), range(1, 10)).good == (1, 2, 3, 4)


def test_the_largest_set_that_agrees_is_taken():
    def two_kinds(x):
        return product(x) * (1 + 1e-6 * (len(x) < 3))

    assert agreeing(two_kinds, (40,), range(1, 10)).good == tuple(range(3, 10))


def test_where_nothing_agrees_rows_are_computed_one_by_one():
    def never(x):
        return product(x) * (1 + 1e-6 * torch.arange(len(x))[:, None])

    assert agreeing(never, (40,), (2, 4, 8)).good == (1,)
