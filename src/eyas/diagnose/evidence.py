"""Evidence: texts that the target wrote, and its states at every boundary while it read them.

Shape letters: see `eyas.model.target`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from eyas.decode.prefill import read_prompt
from eyas.diagnose.answers import Text, texts_of
from eyas.errors import TargetError
from eyas.model.target import Target
from eyas.spec import Eagle3Spec, Fused, LastState, boundaries_of

ROWS = 8  # texts that are read together, alike in length
MEMORY = 2 * 2**30  # bytes of states that are held; beyond it texts are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Texts padded on the right, with the target's states at every boundary.

    `ids_BT` is longer than the states by the tokens beyond the answers' ends. `states` has a
    tensor [B, T, H] for each boundary, `final_BTH` the residual stream before the final norm.
    """

    texts: tuple[Text, ...]
    ids_BT: Tensor
    states: dict[int, Tensor]
    final_BTH: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What every drafter for one target is judged on. `left_out` counts texts beyond `MEMORY`."""

    target: Target
    batches: tuple[Batch, ...]
    left_out: int

    @property
    def texts(self) -> tuple[Text, ...]:
        """The texts in the order of the batches."""
        return tuple(text for batch in self.batches for text in batch.texts)

    @property
    def starts(self) -> int:
        """The number of slots at which a round may start."""
        return sum(len(text.starts) for text in self.texts)

    def some(self, texts: int) -> Evidence:
        """`texts` of the texts, of middle length, for a first look."""
        full = [batch for batch in self.batches if len(batch.texts) >= texts] or self.batches
        batch = full[len(full) // 2]
        stride = max(len(batch.texts) // texts, 1)
        part = Batch(
            texts=batch.texts[::stride],
            ids_BT=batch.ids_BT[::stride],
            states={k: held[::stride] for k, held in batch.states.items()},
            final_BTH=batch.final_BTH[::stride],
        )
        return Evidence(target=self.target, batches=(part,), left_out=self.left_out)

    def conditioned(self, batch: Batch, spec: Eagle3Spec) -> Tensor:
        """What a drafter of `spec` is handed of the target in `batch`, [B, T, its width].

        Raises TargetError for a boundary that the target does not have, and for too many or few.
        """
        conditioning = spec.conditioning
        if isinstance(conditioning, LastState):
            if conditioning.after_final_norm.value:
                return self.target.normed(batch.final_BTH)
            return batch.final_BTH
        asked = boundaries_of(conditioning.boundaries.value, self.target.facts.num_layers)
        if isinstance(conditioning, Fused) and len(asked) != conditioning.count.value:
            raise TargetError(
                f"{len(asked)} states are captured, and fc takes {conditioning.count.value}"
            )
        return torch.cat([batch.states[boundary] for boundary in asked], dim=-1)


def gather(
    target: Target, prompts: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Evidence:
    """The evidence of `prompts`, a file, or of eyas's own; `say` hears what takes long.

    Raises UsageError for prompts that cannot be used, and TargetError for a target without room
    for a single text.
    """
    texts = texts_of(target, prompts, say)
    boundaries = range(target.facts.num_layers + 1)
    token = (len(boundaries) + 1) * target.facts.hidden_size * 4
    kept, room = [], MEMORY
    for text in texts:
        room -= token * len(text.ids)
        if room >= 0:
            kept.append(text)
    if not kept:
        raise TargetError(f"the states of `{target.facts.name}` are too large to be held")
    say(f"{target.facts.name} reads {len(kept)} answers")
    batches = tuple(_read(target, rows, boundaries) for rows in _alike(kept))
    return Evidence(target=target, batches=batches, left_out=len(texts) - len(kept))


def _alike(texts: Sequence[Text]) -> Iterator[tuple[Text, ...]]:
    ordered = sorted(texts, key=lambda text: len(text.ids))
    for first in range(0, len(ordered), ROWS):
        yield tuple(ordered[first : first + ROWS])


@torch.inference_mode()
def _read(target: Target, texts: tuple[Text, ...], boundaries: Sequence[int]) -> Batch:
    """Padding on the right is never seen by what stands before it."""
    device = target.embedding_VH.device
    longest = max(len(text.ids) for text in texts)
    padded = [[*text.ids, *[0] * (longest - len(text.ids))] for text in texts]
    ids_BT = torch.tensor(padded, device=device)
    seen = max(text.prompt + text.answer for text in texts)
    cache = target.new_cache(len(texts), seen)
    reading = read_prompt(target, ids_BT[:, :seen], cache, boundaries)
    assert reading.captured_BTC is not None  # boundaries were asked for
    width = target.facts.hidden_size
    parts = torch.split(reading.captured_BTC, width, dim=-1)
    return Batch(
        texts=texts,
        ids_BT=ids_BT,
        states=dict(zip(boundaries, parts, strict=True)),
        final_BTH=reading.final_BTH,
    )
