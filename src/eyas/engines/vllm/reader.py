"""Reading a checkpoint as vLLM does: config, launch, load, and what it then computes."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.answer import Answer
from eyas.engines.capture import replaced_by_target
from eyas.engines.launch import Settings, context_of
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass, native_method
from eyas.engines.vllm.boundaries import capture_of
from eyas.engines.vllm.conditioning import captures, conditioning_of, require_width
from eyas.engines.vllm.config import draft_config, is_speculators
from eyas.engines.vllm.dflash import as_built, require_dflash_width, require_sliding
from eyas.engines.vllm.drafter import Drafter, drafter_of
from eyas.engines.vllm.launch import CONTEXT, CONTEXT_KEY, drafts_in_parallel, method_of
from eyas.engines.vllm.loader import load, load_dflash, load_eagle1
from eyas.engines.vllm.parameters import EMBEDDING, HEAD
from eyas.engines.vllm.served import (
    eagle3_spec,
    own_embedding,
    own_head,
    require_embedding,
)
from eyas.engines.vllm.targets import require_capture
from eyas.spec import (
    Claim,
    FromTarget,
    LongContext,
    Recognised,
    Served,
    Stage,
    assumed,
)

_MASK_FILE = "mask_embedding.pt"  # qwen3_dflash.py 929-966


def read(
    version: str,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    settings: Settings,
) -> Served:
    """What vLLM `version` makes of `checkpoint`; raises NotCovered."""
    if runner is None:
        raise NotCovered("vLLM reads layer ids by runner, and none is named")
    reading = _Reading(
        version=version, runner=runner, checkpoint=checkpoint, target=target, settings=settings
    )
    try:
        reading.run()
    except Refused as end:
        reading.refuse(end)
    return reading.served("vllm", version, reading.runner, context=context_of(settings, CONTEXT))


@dataclass(slots=True, kw_only=True)
class _Reading(Answer):
    """The answer, and what it is an answer to; `runner` is the one that really runs."""

    version: str
    runner: str
    checkpoint: Checkpoint
    target: TargetFacts | None
    settings: Settings

    def run(self) -> None:
        """Follow the engine to the end; Refused where it raises."""
        checkpoint, target = self.checkpoint, self.target
        speculators = is_speculators(checkpoint)
        method = method_of(
            self.settings,
            checkpoint.location,
            native=native_method(checkpoint.config),
            speculators=speculators,
        )
        self.claims += [claims.METHOD, claims.DEFAULT_RUNNER]
        config = draft_config(checkpoint, self.version, method)
        if (
            drafts_in_parallel(self.settings, config.view, method)
            and method not in ("dflash", "dspark")
            and self.runner == "v2"
        ):  # decided before anything is built (vllm/config/vllm.py 2939-2943)
            self.runner = "v1"
            self.claims.append(claims.PARALLEL_RUNNER)
        drafter = drafter_of(config, target, self.settings, method)
        self.slides = drafter.slides
        if method in ("eagle", "eagle3"):
            self.long_context = assumed(
                LongContext.EXTENDED, CONTEXT_KEY, whose=f"vllm {self.version}"
            )
            self.claims.append(claims.LONGER_CONTEXT)
        if method == "draft_model":
            self._plain(drafter)
            return
        if drafter.built is DraftClass.EAGLE1:
            self._eagle1(drafter)
            return
        if drafter.built is DraftClass.DFLASH:
            self._dflash(drafter, method)
            return
        capture = capture_of(drafter.config, self.runner, target)
        conditioning, why = conditioning_of(
            drafter, capture, method=method, runner=self.runner, version=self.version
        )
        self.claims += [*_claims(drafter, speculators=speculators), *why]
        spec = eagle3_spec(checkpoint, drafter, conditioning, target, runner=self.runner)
        self.spec = spec
        loading = load(checkpoint.tensors.values(), drafter)
        self.landing = loading.landing(replaced_by_target(spec))
        captured = captures(drafter, method=method, runner=self.runner, version=self.version)
        if captured:
            self.claims.append(claims.SUPPORTS_EAGLE3)
            require_capture(target, self.version)
        require_embedding(checkpoint, drafter, target, self.runner)
        require_width(drafter, capture, conditioning, target, captured=captured)

    def _plain(self, drafter: Drafter) -> None:
        """A drafter that vLLM takes for a plain model: loaded, then called without states."""
        tensors = self.checkpoint.tensors.values()
        if drafter.built is DraftClass.DFLASH:
            raise NotCovered("a DFlash drafter as a plain draft model: eyas has no contract for it")
        loaded = load_eagle1 if drafter.built is DraftClass.EAGLE1 else load
        self.landing = loaded(tensors, drafter).landing({})
        raise Refused(
            Stage.FIRST_REQUEST,
            f"no method is given and {self.checkpoint.location} names none: vLLM takes it for a"
            " plain draft model",
            claims.METHOD,
        )

    def _dflash(self, drafter: Drafter, method: str) -> None:
        if method != "dflash":
            raise NotCovered(f"a DFlash drafter under method {method}: eyas has no contract for it")
        if not drafter.uses_states.value:
            raise NotCovered(f"{drafter.uses_states.key} is false in a DFlash drafter")
        if (self.checkpoint.directory / _MASK_FILE).is_file():
            raise NotCovered(f"{_MASK_FILE} is there, and eyas does not read it")
        self.spec = Recognised(
            name="DFlash",
            why="a drafter of blocks",
            lacks="eyas accounts for its tensors alone",
        )
        capture = capture_of(as_built(drafter.config), self.runner, self.target)
        self.claims += [claims.DFLASH, claims.DFLASH_WIDTH, *capture.claims, claims.SUPPORTS_EAGLE3]
        require_sliding(drafter, self.runner)
        tensors = self.checkpoint.tensors
        replaced = {}
        if not own_embedding(self.checkpoint):
            replaced[EMBEDDING] = FromTarget(what="embed_tokens.weight")
        if not own_head(self.checkpoint):
            replaced[HEAD] = FromTarget(what="lm_head.weight")
        self.landing = load_dflash(tensors.values(), drafter).landing(replaced)
        require_capture(self.target, self.version)
        require_dflash_width(drafter, capture, self.target)

    def _eagle1(self, drafter: Drafter) -> None:
        self.spec = Recognised(
            name="EAGLE-1",
            why="one state beside the embedding",
            lacks="eyas accounts for its tensors alone",
        )
        self.claims.append(claims.EAGLE1)
        own = own_embedding(self.checkpoint)
        replaced = {} if own else {EMBEDDING: FromTarget(what="embed_tokens.weight")}
        self.landing = load_eagle1(self.checkpoint.tensors.values(), drafter).landing(replaced)
        wide = None if self.target is None else self.target.hidden_size
        hidden = drafter.sizes.hidden_size
        if wide is not None and wide != hidden.value:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"the target's state is {wide} wide, and {hidden.key} is {hidden.value}",
                claims.EAGLE1,
            )


def _claims(drafter: Drafter, *, speculators: bool) -> list[Claim]:
    """What is said of every drafter of this class and config."""
    used = [claims.UNKNOWN_NAME, claims.MISSING, claims.MAP, claims.EMBEDDING, claims.HEAD]
    if not speculators:
        used.append(claims.RESIDUAL)
    elif drafter.config.places.get("pard_token") is not None:
        used.append(claims.SPECULATORS_PEAGLE)
    else:
        used.append(claims.SPECULATORS)
    by_class = {DraftClass.QWEN3: claims.QWEN3, DraftClass.DEEPSEEK: claims.LATENT}
    if drafter.built in by_class:
        used.append(by_class[drafter.built])
    if drafter.in_parallel:
        used.extend((claims.PARALLEL, claims.MASK_TOKEN))
    if drafter.sizes.num_layers.value > 1:
        used.append(claims.LATER_LAYERS)
    if drafter.config.flag("tie_word_embeddings").value:
        used.append(claims.TIE_IGNORED)
    if drafter.config.get("layer_types") or drafter.config.get("sliding_window"):
        used.append(claims.SLIDING_WINDOW)
    return used
