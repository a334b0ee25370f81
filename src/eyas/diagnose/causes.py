"""Causes: what may have lost a drafter's acceptance, each with a stable id.

Evidence that makes a cause, by stage:

- *static*: what the files and the engine's contract say (`eyas check`), or the numbers in them;
- *as served*: the drafter as the engine has it differs from the one as trained in this, and accepts
  other drafts for it;
- *sweep*: another reading of the same files drafts better, on real states and beyond chance;
- *speed*: the observed numbers, when the chains explain them or do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eyas.decode.interval import Estimate


class CauseId(StrEnum):
    """The name of a cause; a name is never reused. In brackets: what makes it, beyond the words."""

    # the engine does not start, or crashes at once
    REFUSED = "refused"  # [served.refusal, or a map that leaves the vocabulary]
    ARCHITECTURE = "architecture"  # no reader knows the class [no dialect, or refused for the name]
    # weights that are not where they should be [landing, or absent from the files]
    LAYER_LOST = "layer-lost"  # most matrices of a decoder layer
    FUSION_LOST = "fusion-lost"  # fc
    MATRIX_LOST = "matrix-lost"  # another matrix or bias
    NORM_LOST = "norm-lost"
    HEAD_LOST = "head-lost"
    STALE_FILE = "stale-file"  # another weight file beside them is read over them
    # fusion
    FUSION_BYPASSED = "fusion-bypassed"  # one state, or states that fc never sees: launch or config
    BOUNDARIES = "boundaries"  # other states than trained: shifted, permuted, missing
    TOKEN_SHIFT = "token-shift"  # tokens paired with states of another position
    # the vocabulary
    MAP_LOST = "map-lost"  # draft ids taken for target ids
    MAP_ABSOLUTE = "map-absolute"  # ids where offsets are read, or the other way
    MAP_WRONG = (
        "map-wrong"  # a map of other rows [rows of the head name other tokens of the target]
    )
    HEAD_ROWS = "head-rows"  # rows in another order than the map's [as above; the map is in order]
    HEAD_REPLACED = "head-replaced"  # the target's rows where the drafter has its own
    HEAD_TIED = "head-tied"  # the drafter's embedding in the head's place, or the other way
    EMBEDDING_WRONG = (
        "embedding-wrong"  # nothing like the target's [cosine; the target's is better]
    )
    EMBEDDING_REPLACED = "embedding-replaced"  # the target's where the drafter has trained its own
    # arithmetic
    RESIDUAL = "residual"  # norm_before_residual
    FEEDBACK = "feedback"  # norm_output: which state goes to the next draft step
    ROPE = "rope"  # base or scaling
    NORMS = "norms"  # norms of the states (norm_before_fc, fc_norm), or the eps of all norms
    NORMS_SWAPPED = "norms-swapped"  # hidden_norm and input_layernorm
    ACTIVATION = "activation"
    HEADS = "heads"  # head count or width
    SHAPES = "shapes"  # sizes in the config against the tensors
    DEPTH = "depth"  # number of decoder layers
    # the numbers in the files
    WEIGHTS_AT_INIT = "weights-at-init"  # never trained [moments, or no direction above noise]
    WEIGHTS_ZERO = "weights-zero"
    WEIGHTS_NAN = "weights-nan"
    WEIGHTS_REPEATED = "weights-repeated"
    ROWS_PERMUTED = "rows-permuted"  # q and k in the order of llama.cpp
    GATE_UP_SWAPPED = "gate-up-swapped"
    KV_SWAPPED = "kv-swapped"
    UNSCALED = "unscaled"  # eight-bit numbers without their scale
    # none of these
    WEAK_DRAFTER = "weak-drafter"  # replays weakly as trained, and nothing repairs it
    ENGINE = "engine"  # observed below what the drafter as served gives: beyond files and launch
    ENGINE_COST = "engine-cost"  # a round costs more than it should [observed speeds]
    NONE = "none"


# Rules of `eyas check` whose findings speak of a cause: for its place, and what to type.
RULES: dict[CauseId, tuple[str, ...]] = {
    CauseId.LAYER_LOST: ("L202", "L201", "L203"),
    CauseId.FUSION_LOST: ("L201", "L203"),
    CauseId.MATRIX_LOST: ("L201", "L203", "L205", "F305", "L206"),
    CauseId.NORM_LOST: ("L201", "L203", "L206"),
    CauseId.HEAD_LOST: ("L201", "L203"),
    CauseId.STALE_FILE: ("L201",),
    CauseId.FUSION_BYPASSED: ("F301", "F302"),
    CauseId.BOUNDARIES: ("B601", "B602", "B603", "F303"),
    CauseId.MAP_LOST: ("V402", "V403", "L201"),
    CauseId.MAP_ABSOLUTE: ("V404", "V402"),
    CauseId.MAP_WRONG: ("V404", "V407", "V406"),
    CauseId.HEAD_REPLACED: ("V401",),
    CauseId.HEAD_TIED: ("V401",),
    CauseId.EMBEDDING_REPLACED: ("V405",),
    CauseId.EMBEDDING_WRONG: ("W905",),
    CauseId.RESIDUAL: ("N501",),
    CauseId.FEEDBACK: ("N502", "N507"),
    CauseId.ROPE: ("N503", "N506", "T706"),
    CauseId.NORMS: ("F304", "F307", "N504"),
    CauseId.ACTIVATION: ("N504",),
    CauseId.HEADS: ("C104", "C102", "C103", "L204", "L207"),
    CauseId.SHAPES: ("C104", "C102", "L204", "L207", "T701"),
    CauseId.DEPTH: ("C102", "L203", "C104"),
    CauseId.WEIGHTS_ZERO: ("W901",),
    CauseId.WEIGHTS_NAN: ("W902",),
    CauseId.WEIGHTS_REPEATED: ("W903",),
    CauseId.WEIGHTS_AT_INIT: ("W904",),
    CauseId.UNSCALED: ("L208", "C105"),
    CauseId.REFUSED: ("C101",),
    CauseId.ARCHITECTURE: ("C101",),
}


class Stage(StrEnum):
    """Where a cause was found."""

    STATIC = "static"
    TRAINED = "as trained"
    SERVED = "as served"
    SWEEP = "sweep"
    SPEED = "speed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause and what speaks for it.

    `alone` is the tau that it costs a drafter with nothing else wrong, `returned` what repairing
    it alone gives back; None where no number can be had. `score` orders the causes.
    """

    id: CauseId
    sentence: str
    evidence: tuple[str, ...]
    alone: Estimate | None
    returned: Estimate | None
    score: float
    command: str
    stage: Stage
