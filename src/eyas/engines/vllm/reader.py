"""Reading a checkpoint as vLLM does: config, launch, load, and what it then computes."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.capture import Capture, replaced_by_target, target_width
from eyas.engines.launch import Settings, context_of
from eyas.engines.spec_of import (
    embedding_of,
    grouped_attention,
    head_of,
    spec_of,
    vocab_map_of,
)
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.boundaries import capture_of
from eyas.engines.vllm.config import draft_config, is_speculators
from eyas.engines.vllm.drafter import Drafter, drafter_of
from eyas.engines.vllm.launch import CONTEXT, METHOD_KEY, method_of
from eyas.engines.vllm.loader import load
from eyas.spec import (
    Claim,
    Eagle3Spec,
    Fact,
    Fused,
    Landing,
    LastState,
    LaterNorm,
    Refusal,
    Served,
    Stage,
    Unfused,
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
    """What vLLM `version` makes of `checkpoint`; raises NotCovered."""
    if runner is None:
        raise NotCovered("vLLM reads layer ids by runner, and none is named")
    spec: Eagle3Spec | None = None
    landing: Landing | None = None
    slides: Fact[bool] | None = None
    refusal: Refusal | None = None
    speculators = is_speculators(checkpoint)
    method = method_of(settings, checkpoint.location, speculators=speculators)
    used: list[Claim] = [claims.METHOD, claims.DEFAULT_RUNNER]
    try:
        if method == "draft_model":
            raise Refused(
                Stage.FIRST_REQUEST,
                f"no method is given and {checkpoint.location} has no 'eagle3' in it: vLLM takes"
                " it for a plain draft model",
                claims.METHOD,
            )
        config = draft_config(checkpoint, version, method)
        drafter = drafter_of(config, target)
        slides = drafter.slides
        capture = capture_of(config, runner, target)
        unfused = _without_fc(drafter, capture, method, runner)
        used += _claims(drafter, capture, unfused, method, speculators=speculators)
        spec = _spec(checkpoint, drafter, capture, unfused, target)
        landing = load(checkpoint.tensors.values(), drafter).landing(replaced_by_target(spec))
        _require_width(drafter, capture, unfused, target)
    except Refused as end:
        refusal = end.refusal
        used.append(refusal.claim)
    return Served(
        engine="vllm",
        version=version,
        runner=runner,
        spec=spec,
        landing=landing,
        slides=slides,
        refusal=refusal,
        claims=tuple(dict.fromkeys(used)),
        context=context_of(settings, CONTEXT),
    )


def _claims(
    drafter: Drafter,
    capture: Capture,
    unfused: LastState | Unfused | None,
    method: str,
    *,
    speculators: bool,
) -> list[Claim]:
    used = [claims.UNKNOWN_NAME, claims.MISSING, claims.MAP, claims.EMBEDDING, claims.HEAD]
    used.append(claims.SPECULATORS if speculators else claims.RESIDUAL)
    if method == "eagle":
        used.extend((claims.METHOD_EAGLE, claims.LAST_STATE))
    elif isinstance(unfused, LastState):
        used.extend((claims.AUX_OFF, claims.LAST_STATE))
    elif unfused is not None:
        used.extend((claims.AUX_OFF, claims.AUX_OFF_V2, *capture.claims))
    else:
        used.extend((*capture.claims, claims.WIDTH))
    if drafter.sizes.num_layers.value > 1:
        used.append(claims.LATER_LAYERS)
    if drafter.config.flag("tie_word_embeddings").value:
        used.append(claims.TIE_IGNORED)
    if drafter.config.get("layer_types") or drafter.config.get("sliding_window"):
        used.append(claims.SLIDING_WINDOW)
    return used


def _without_fc(
    drafter: Drafter, capture: Capture, method: str, runner: str
) -> LastState | Unfused | None:
    """The conditioning where fc never runs, None where it does."""
    whose = drafter.config.whose
    if method == "eagle":
        return LastState(
            reason=declared(
                "launched with method eagle: one state, and fc is never called", METHOD_KEY
            ),
            after_final_norm=assumed(True, METHOD_KEY, whose=whose),
        )
    if not drafter.uses_states.value and runner == "v2":
        return Unfused(
            reason=drafter.uses_states.map(
                lambda _: "use_aux_hidden_state is false: the captured states, and no fc"
            ),
            boundaries=capture.boundaries,
        )
    if not drafter.uses_states.value:
        return LastState(
            reason=drafter.uses_states.map(
                lambda _: "use_aux_hidden_state is false: one state, and no fc"
            ),
            after_final_norm=assumed(True, drafter.uses_states.key, whose=whose),
        )
    return None


def _spec(
    checkpoint: Checkpoint,
    drafter: Drafter,
    capture: Capture,
    unfused: LastState | Unfused | None,
    target: TargetFacts | None,
) -> Eagle3Spec:
    config = drafter.config
    conditioning = unfused or Fused(
        boundaries=capture.boundaries,
        count=drafter.count,
        input_norm=drafter.input_norm,
        fc_norm=drafter.fc_norm,
        bias=assumed(False, config.key("bias"), whose=config.whose),
    )
    names = checkpoint.tensors
    map_name = next((n for n in reversed(tuple(names)) if "d2t" in n and "t2d" not in n), None)
    has_embedding = any("embed_tokens" in name for name in names)
    has_head = any("lm_head" in name for name in names)
    same_width = target_width(drafter.sizes, target) == drafter.sizes.hidden_size.value
    return spec_of(
        config=config,
        sizes=drafter.sizes,
        conditioning=conditioning,
        later_norm=LaterNorm.INPUT_LAYERNORM,
        attention=grouped_attention(drafter.sizes, config, bias=drafter.qkv_bias),
        rope=drafter.rope,
        norm_before_residual=drafter.norm_before_residual,
        feedback=drafter.feedback,
        vocab_map=vocab_map_of(
            checkpoint,
            map_name,
            drafter.sizes,
            whose=config.whose,
            identity=not drafter.maps_ids,
        ),
        embedding=embedding_of(
            checkpoint,
            own=has_embedding or not same_width,
            key=checkpoint.place("embed_tokens.weight"),
            whose=config.whose,
        ),
        head=head_of(
            checkpoint,
            assumed(False, config.key("tie_word_embeddings"), whose=config.whose),
            from_target=not has_head,
            key=checkpoint.place("lm_head.weight"),
            whose=config.whose,
        ),
        target=target,
    )


def _require_width(
    drafter: Drafter,
    capture: Capture,
    unfused: LastState | Unfused | None,
    target: TargetFacts | None,
) -> None:
    """Refuse where the first request raises."""
    one = target_width(drafter.sizes, target)
    hidden = drafter.sizes.hidden_size.value
    if isinstance(unfused, Unfused):
        if capture.count * one != hidden:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"without fc the target still hands over {capture.count} states of {one}, together"
                f" {capture.count * one} wide, and the drafter is {hidden}",
                claims.AUX_OFF_V2,
            )
        return
    if unfused is not None:
        if one != hidden:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"the target's last state is {one} wide and the drafter {hidden}",
                claims.WIDTH,
            )
        return
    wanted = drafter.count.value * drafter.sizes.target_hidden_size.value
    if capture.count * one != wanted:
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target hands over {capture.count} states of {one}, together"
            f" {capture.count * one} wide, and fc takes {wanted}",
            claims.WIDTH,
        )
