"""The facts that fix a drafter's arithmetic, and the account of what an engine loads of it."""

from eyas.spec.attention import Mha, Mla
from eyas.spec.boundaries import Boundaries, DefaultBoundaries, boundaries_of
from eyas.spec.dflash import Confidence, DFlashSpec, Markov
from eyas.spec.draft import (
    DraftSpec,
    Eagle3Spec,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    PEagleSpec,
    Recognised,
    Unfused,
)
from eyas.spec.fact import Fact, Origin, absent, assumed, declared, inferred
from eyas.spec.landing import (
    Fate,
    FromTarget,
    FromTensor,
    Initialisation,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    TensorLanding,
    Unfilled,
)
from eyas.spec.rope import Rope
from eyas.spec.served import Claim, LongContext, NotChecked, Refusal, Served, Stage
from eyas.spec.vocabulary import Ownership, VocabMap, VocabOrder, most_counted

__all__ = [
    "Boundaries",
    "Claim",
    "Confidence",
    "DFlashSpec",
    "DefaultBoundaries",
    "DraftSpec",
    "Eagle3Spec",
    "Fact",
    "Fate",
    "Feedback",
    "FromTarget",
    "FromTensor",
    "Fused",
    "Initialisation",
    "Landing",
    "LastState",
    "LaterNorm",
    "LongContext",
    "Markov",
    "Mha",
    "Mla",
    "NotChecked",
    "Origin",
    "Ownership",
    "PEagleSpec",
    "Padding",
    "ParameterLanding",
    "Recognised",
    "Refusal",
    "Rope",
    "Segment",
    "Served",
    "Stage",
    "TensorLanding",
    "Unfilled",
    "Unfused",
    "VocabMap",
    "VocabOrder",
    "absent",
    "assumed",
    "boundaries_of",
    "declared",
    "inferred",
    "most_counted",
]
