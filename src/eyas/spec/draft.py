"""DraftSpec: the facts that fix a drafter's arithmetic, with no default for any of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eyas.errors import one_line
from eyas.spec.attention import Mha, Mla
from eyas.spec.boundaries import Boundaries
from eyas.spec.dflash import DFlashSpec
from eyas.spec.fact import Fact
from eyas.spec.rope import Rope
from eyas.spec.vocabulary import Ownership, VocabMap, VocabOrder


class Feedback(StrEnum):
    """Which state a draft step hands to the next one."""

    PRE_NORM = "pre-norm"  # the decoder's output
    POST_NORM = "post-norm"  # the decoder's output after the final norm (EAGLE-3.1)


class LaterNorm(StrEnum):
    """Which norm a decoder layer after the first calls before its attention."""

    INPUT_LAYERNORM = "input_layernorm"  # speculators, vLLM, ModelOpt's Hugging Face export
    HIDDEN_NORM = "hidden_norm"  # SGLang, TensorRT-LLM, ModelOpt's Megatron export


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """fc over the concatenated states at the captured boundaries."""

    boundaries: Fact[Boundaries]
    count: Fact[int]  # number of captured states: fc is [hidden, count * target hidden]
    input_norm: Fact[bool]  # one RMSNorm over the concatenation, before fc
    fc_norm: Fact[bool]  # one RMSNorm for each captured state, before fc
    bias: Fact[bool]  # on fc


@dataclass(frozen=True, slots=True, kw_only=True)
class LastState:
    """One state of the target, used as it is: fc never runs.

    SGLang and vLLM hand over what the target's head sees, the state after its final norm:

    - SGLang 0.5.10.post1: without captured states, layers/logits_processor.py:555-556 stores the
      states that it was given, which models/llama.py:405 has normed; a state from before the norm
      would win (:584-587), and no model of that version passes one.
    - SGLang 0.5.23: layers/logits_processor.py:868-871 stores them, models/llama.py:498 norms
      them. DeepSeek-V4 alone passes its state from before the norm
      (model_executor/runner/eager_runner.py:429-435), and that one is stored.
    - vLLM 0.32.0: the V1 runner takes the model's output (v1/worker/gpu_model_runner.py:4958,
      4975, 4996), the V2 runner too (v1/worker/gpu/spec_decode/target_dependent_ar/
      speculator.py:215-216); model_executor/models/llama.py:452 has normed it. Again
      DeepSeek-V4 is the exception (v1/worker/gpu_model_runner.py:4940-4944).
    """

    reason: Fact[str]
    after_final_norm: Fact[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfused:
    """The captured states, together as wide as the drafter, used as they are: fc never runs.

    SGLang runs fc only where the width that arrives is not the embedding's, so that a single
    captured state of the drafter's own width passes by it. vLLM's V2 runner hands over captured
    states to a drafter without fc (`use_aux_hidden_state` false).
    """

    reason: Fact[str]
    boundaries: Fact[Boundaries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3Spec:
    """An EAGLE-3 drafter (arXiv 2503.01840) and its kin of the 3.1 kind.

    A fact whose value may be None is one that the files do not state and that no known code
    fills in; it stays None, and is a finding where it matters.
    """

    hidden_size: Fact[int]
    target_hidden_size: Fact[int]
    intermediate_size: Fact[int]
    num_layers: Fact[int]
    later_norm: Fact[LaterNorm | None]  # None where there is one layer
    attention: Mha | Mla
    conditioning: Fused | LastState | Unfused
    activation: Fact[str]
    rms_norm_eps: Fact[float]
    rope: Fact[Rope]
    max_position_embeddings: Fact[int | None]
    norm_before_residual: Fact[bool]
    feedback: Fact[Feedback]
    vocab_size: Fact[int]  # the target's
    draft_vocab_size: Fact[int]
    vocab_map: Fact[VocabMap]
    vocab_order: Fact[VocabOrder | None]  # None where there is no map whose numbers could be read
    embedding: Fact[Ownership]
    head: Fact[Ownership]
    target_name: Fact[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PEagleSpec:
    """A P-EAGLE drafter (arXiv 2602.01469): an EAGLE-3 drafter that drafts all tokens in one pass.

    Beyond the first token, the mask token stands for the token and `mask_hidden`, a state of fc's
    input that was learned, for the target's. `drafter.feedback` is not used: nothing is fed back.
    """

    drafter: Eagle3Spec
    mask_token_id: Fact[int | None]
    mask_hidden: Fact[bool]
    depths: Fact[int | None]  # how many tokens one pass was trained to draft

    @property
    def name(self) -> str:
        """What this kind of drafter is called."""
        return "P-EAGLE"

    @property
    def unjudged(self) -> str:
        """Why engines are not checked with it."""
        return "eyas reads P-EAGLE drafters, and has no contract of how engines draft in parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """A drafter that is known by name alone: recognised, and not judged.

    `lacks` says what eyas cannot do with it.
    """

    name: str
    why: str
    lacks: str

    @property
    def unjudged(self) -> str:
        """Why engines are not checked with it."""
        return one_line(f"{self.name} is known by name alone ({self.why}); {self.lacks}")


DraftSpec = Eagle3Spec | PEagleSpec | DFlashSpec | Recognised
