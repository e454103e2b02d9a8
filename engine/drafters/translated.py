"""Drafts with a model of another vocabulary, translated through bytes."""

from collections.abc import Sequence

import torch

from engine.errors import Reason
from engine.model import LanguageModel
from engine.sampling import Policy, choose
from engine.translation import Translation, Words
from engine.verify import Draft

# Steps of the draft beyond one for each token: where one token of the target takes several.
MORE = 2


class TranslatedDrafter:
    """A second language model that reads the chat's text in tokens of its own.

    What it drafts is cut as the target's tokenizer cuts it, so the ids are those that the target
    would write. They are drafted as if certain: exact under both verifications. Where the answer
    follows the noise, the draft follows it by the target's ids.
    """

    name = "model"
    default_length = 7  # with the target's own token the 8 rows of a block

    def __init__(self, model: LanguageModel, target: Words, draft: Words) -> None:
        self.model = model
        self.pause: Reason | None = None
        self._ours, self._theirs = target, draft
        self._text = Translation(target, draft)
        self._first = _first_of(target, draft, model.vocab_size).to(model.device)

    def reset(self) -> None:
        self.model.cache.empty()
        self._text.reset()

    def prefill(self, tokens: Sequence[int]) -> None:
        if self._can_follow(tokens):
            self.model.feed(self._text.ids[self.model.cache.length :])

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        found = self._draft(tokens, limit, policy)
        self._text.expect(found)
        return Draft(tuple(found))

    def settle(self, length: int) -> None:
        self._text.keep(length)
        self.model.cache.crop_to(len(self._text.ids))

    def _draft(self, tokens: Sequence[int], limit: int, policy: Policy) -> list[int]:
        room = self.model.context - len(self._text.ids)
        drafted, found, asked = b"", list[int](), 0
        for _ in range(min(limit + MORE, room)):
            logits, row = self._next()
            # once for each token of the target, which takes several steps, or comes with another
            while asked <= len(found):
                limit, asked = policy.paced(limit, row), asked + 1
            if len(found) >= limit:
                break
            ours, theirs = self._choose(logits, row, [*tokens, *found], policy)
            if ours in policy.ends or ours in self._ours.vocabulary.special:
                return [*found, ours]
            drafted += self._theirs.bytes_of(theirs)
            self._text.add(theirs)
            found = self._ours.cut(drafted)[0]
            if len(found) >= limit:
                break
        return found[:limit]

    def _next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits of what comes next: of its own tokens, and of the target's, each by the best
        of those that begin with it."""
        (logits,) = self.model.forward(self._text.ids[self.model.cache.length :]).float()
        size = len(self._ours.vocabulary.tokens)
        row = torch.full((size + 1,), -torch.inf, device=logits.device)
        row.scatter_reduce_(0, self._first, logits, "amax")
        return logits, row[:size]

    def _choose(
        self, logits: torch.Tensor, row: torch.Tensor, history: Sequence[int], policy: Policy
    ) -> tuple[int, int]:
        """The next token of the target that the draft expects behind `history`, and the token of
        its own that stands for it."""
        (p,) = policy.distributions(row[None], history)
        certain = policy.verification == "rejection"
        ours = int(p.ids[0]) if certain else choose(p, policy.noise, len(history))
        theirs = torch.where(self._first == ours, logits, -torch.inf).argmax()
        return ours, int(theirs)

    def _can_follow(self, tokens: Sequence[int]) -> bool:
        """Take in `tokens`; whether this model can be fed them and draft. `pause` says why not."""
        same, ids = self._text.follow(tokens), self._text.ids
        # what comes next is asked of the last id, which may be held already
        self.model.cache.crop_to(max(0, min(same, len(ids) - 1)))
        if len(ids) >= self.model.context:
            self.pause = Reason(
                "draft_context_full",
                "Drafting is paused: the chat is longer than the draft's context of "
                "{context} tokens.",
                {"context": self.model.context},
            )
        elif any(t >= self.model.vocab_size for t in ids[self.model.cache.length :]):
            self.pause = Reason(
                "draft_lacks_token",
                "Drafting is paused: the text holds a token that the draft does not have.",
            )
        else:
            self.pause = None
        return self.pause is None and bool(ids)


def _first_of(ours: Words, theirs: Words, rows: int) -> torch.Tensor:
    """The target's token that each of the draft's `rows` begins with: the same one as a rule. One
    more than the last id where there is none."""
    none = len(ours.vocabulary.tokens)
    named = {ours.bytes_of(i): i for i in ours.vocabulary.special}
    end = ours.tokenizer.end
    found = [none] * rows
    for i, token in enumerate(theirs.vocabulary.tokens[:rows]):
        if not token:
            continue
        if i in theirs.vocabulary.special:
            first = named.get(token, end if i in theirs.tokenizer.eos_ids else None)
        else:
            first = ours.longest(token)
        found[i] = none if first is None else first
    return torch.tensor(found)
