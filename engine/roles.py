"""Which positions of a text are computed together: a prompt in chunks, an answer row by row.

Arithmetic on positions only. Where a row's bits depend on the rows beside it, a text is the same
after an edit, a chat switch or a restart only if its positions are split the same way each time.
"""

from collections.abc import Sequence

# Prompt positions are computed in chunks that end at multiples of this, so that how a prompt is
# split does not depend on what was cached. At 128 a layer of a 1.5B model takes 0.2 s on two slow
# CPU cores: a stop, asked for between layers, is heard in time.
PREFILL_CHUNK = 128

# The chunk that a prompt position is computed in; None for an answer position.
Role = range | None


def next_border(position: int) -> int:
    """The end of the prompt chunk that `position` lies in."""
    return (position // PREFILL_CHUNK + 1) * PREFILL_CHUNK


def roles(start: int, stop: int, answers: Sequence[range] = ()) -> list[Role]:
    """The role of each position from `start` up to `stop`.

    `answers` are the positions of the tokens of answers, in order. A position is an answer
    position if the token after it belongs to an answer: the last one of a prompt is, the last one
    of an answer is not.
    """
    found: list[Role] = []
    for answer in (*answers, range(stop + 1, stop + 1)):
        begin = min(answer.start - 1, stop)
        while start < begin:
            end = min(next_border(start), begin)
            found += [range(start, end)] * (end - start)
            start = end
        end = min(answer.stop - 1, stop)
        if start < end:
            found += [None] * (end - start)
            start = end
    return found


def unchanged(held: Sequence[Role], wanted: Sequence[Role]) -> int:
    """How many leading positions, computed as `held`, are as good as if computed as `wanted`.

    A chunk counts as a whole or not at all.
    """
    both = zip(held, wanted, strict=False)
    same = next((i for i, (a, b) in enumerate(both) if a != b), min(len(held), len(wanted)))
    chunk = wanted[same] if same < len(wanted) else None
    return same if chunk is None else min(same, chunk.start)
