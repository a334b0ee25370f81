"""Reading a checkpoint as SGLang does: config, launch, load, and what it then computes."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.capture import Capture, replaced_by_target, target_width
from eyas.engines.launch import Settings, context_of
from eyas.engines.sglang import claims
from eyas.engines.sglang.architecture import require_llama_eagle3
from eyas.engines.sglang.boundaries import capture_of
from eyas.engines.sglang.contract import Contract, contract_of
from eyas.engines.sglang.drafter import Drafter, draft_config, drafter_of
from eyas.engines.sglang.launch import ALGORITHM_KEY, CONTEXT, serves_as_eagle, uses_graphs
from eyas.engines.sglang.loader import load, parameters_of
from eyas.engines.spec_of import (
    embedding_of,
    grouped_attention,
    head_of,
    spec_of,
    vocab_map_of,
)
from eyas.engines.stop import Refused
from eyas.engines.version import version_of
from eyas.spec import (
    Claim,
    Eagle3Spec,
    Fact,
    Fused,
    Landing,
    LastState,
    LaterNorm,
    Ownership,
    Refusal,
    Served,
    Stage,
    Unfused,
    VocabMap,
    assumed,
    declared,
)


def read(
    version: str,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    settings: Settings,
) -> Served:
    """What SGLang `version` makes of `checkpoint`; raises NotCovered."""
    contract = contract_of(version_of(version), version)
    spec: Eagle3Spec | None = None
    landing: Landing | None = None
    slides: Fact[bool] | None = None
    refusal: Refusal | None = None
    used: list[Claim] = []
    try:
        config = draft_config(checkpoint, contract)
        require_llama_eagle3(config)
        drafter = drafter_of(config, contract)
        slides = assumed(False, config.key("layer_types"), whose=config.whose)
        capture = capture_of(
            config.get("eagle_config"),
            contract,
            target,
            graphs=uses_graphs(settings),
            stop=config.stop,
        )
        eagle = serves_as_eagle(settings)
        used += _claims(drafter, capture, contract, eagle=eagle)
        if eagle and drafter.tied.value:
            raise Refused(
                Stage.LOAD,
                f"{drafter.tied.key} makes head and embedding one module, and putting the target's"
                " in their place deletes its weight twice",
                claims.TIED_EAGLE,
            )
        spec = _spec(checkpoint, drafter, capture, target, eagle=eagle)
        loading = load(checkpoint.tensors.values(), parameters_of(drafter, contract), contract)
        landing = loading.landing(replaced_by_target(spec, tied=drafter.tied.value))
        _require_width(drafter, capture, contract, target, spec, eagle=eagle)
    except Refused as end:
        refusal = end.refusal
        used.append(refusal.claim)
    return Served(
        engine="sglang",
        version=version,
        runner=runner,
        spec=spec,
        landing=landing,
        slides=slides,
        refusal=refusal,
        claims=tuple(dict.fromkeys(used)),
        context=context_of(settings, CONTEXT),
    )


def _claims(drafter: Drafter, capture: Capture, contract: Contract, *, eagle: bool) -> list[Claim]:
    used = [
        claims.layer_names(contract),
        claims.SILENT_SKIP,
        claims.VOCABULARY_MAP,
        claims.RESIDUAL,
        claims.EMBEDDING,
        claims.TIED_HEAD if drafter.tied.value else claims.HEAD,
        claims.width_check(contract),
    ]
    if drafter.sizes.num_layers.value > 1:
        used.append(claims.LATER_LAYERS)
    if drafter.config.get("layer_types") or drafter.config.get("sliding_window"):
        used.append(claims.FULL_ATTENTION)
    if drafter.config.has("rope_parameters") and not contract.rope_parameters:
        used.append(claims.ROPE_PARAMETERS)
    if eagle:
        used.extend((claims.ALGORITHM_EAGLE, claims.LAST_STATE))
    elif not drafter.uses_states.value:
        used.extend((claims.AUX_OFF, claims.LAST_STATE))
    else:
        used.extend(capture.claims)
    return used


def _without_fc(
    drafter: Drafter,
    capture: Capture,
    target: TargetFacts | None,
    *,
    eagle: bool,
) -> LastState | Unfused | None:
    """The conditioning where fc never runs, None where it does."""
    if eagle:
        return LastState(
            reason=declared(
                "launched as EAGLE, the target hands over one state and fc is skipped",
                ALGORITHM_KEY,
            ),
            after_final_norm=declared(True, ALGORITHM_KEY),
        )
    if not drafter.uses_states.value:
        return LastState(
            reason=drafter.uses_states.map(
                lambda _: "use_aux_hidden_state is false: one state, and fc is skipped"
            ),
            after_final_norm=drafter.uses_states.map(lambda _: True),
        )
    width = capture.count * target_width(drafter.sizes, target)
    if width == drafter.sizes.hidden_size.value:
        return Unfused(
            reason=capture.boundaries.map(
                lambda _: (
                    f"the captured states are {width} wide, as wide as the embedding, and"
                    " fc is skipped"
                )
            ),
            boundaries=capture.boundaries,
        )
    return None


def _spec(
    checkpoint: Checkpoint,
    drafter: Drafter,
    capture: Capture,
    target: TargetFacts | None,
    *,
    eagle: bool,
) -> Eagle3Spec:
    config = drafter.config
    conditioning: Fused | LastState | Unfused | None
    conditioning = _without_fc(drafter, capture, target, eagle=eagle)
    if conditioning is None:
        conditioning = Fused(
            boundaries=capture.boundaries,
            count=drafter.count,
            input_norm=drafter.input_norm,
            fc_norm=drafter.fc_norm,
            bias=drafter.fc_bias,
        )
    by_launch = assumed(Ownership.TARGET, ALGORITHM_KEY, whose=config.whose)
    embedding: Fact[Ownership] = by_launch
    head: Fact[Ownership] = by_launch
    map_name = next((name for name in reversed(tuple(checkpoint.tensors)) if "d2t" in name), None)
    vocab_map = vocab_map_of(checkpoint, map_name, drafter.sizes, whose=config.whose)
    if eagle:
        if vocab_map.value is not VocabMap.IDENTITY:
            vocab_map = assumed(VocabMap.PREFIX, ALGORITHM_KEY, whose=config.whose)
    else:
        shared = not drafter.keeps_embedding or drafter.head_from_target
        embedding = embedding_of(
            checkpoint, own=not shared, key=config.key("target_hidden_size"), whose=config.whose
        )
        head = head_of(
            checkpoint,
            drafter.tied,
            from_target=drafter.head_from_target,
            key=config.key("draft_vocab_size"),
            whose=config.whose,
        )
    return spec_of(
        config=config,
        sizes=drafter.sizes,
        conditioning=conditioning,
        later_norm=LaterNorm.HIDDEN_NORM,
        attention=grouped_attention(
            drafter.sizes,
            config,
            bias=assumed(False, config.key("attention_bias"), whose=config.whose),
        ),
        rope=drafter.rope,
        norm_before_residual=assumed(False, config.key("norm_before_residual"), whose=config.whose),
        feedback=drafter.feedback,
        vocab_map=vocab_map,
        embedding=embedding,
        head=head,
        target=target,
    )


def _require_width(
    drafter: Drafter,
    capture: Capture,
    contract: Contract,
    target: TargetFacts | None,
    spec: Eagle3Spec,
    *,
    eagle: bool,
) -> None:
    """Refuse where the first forward pass raises."""
    one = target_width(drafter.sizes, target)
    hidden = drafter.sizes.hidden_size.value
    states = 1 if eagle or not drafter.uses_states.value else capture.count
    if spec.embedding.value is Ownership.TARGET and one != hidden:
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target's embedding is {one} wide and the drafter {hidden}",
            claims.EMBEDDING,
        )
    wanted = drafter.count.value * drafter.sizes.target_hidden_size.value
    if states * one not in (hidden, wanted):
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target hands over {states} states of {one}, together {states * one} wide, and fc"
            f" takes {wanted}",
            claims.width_check(contract),
        )
