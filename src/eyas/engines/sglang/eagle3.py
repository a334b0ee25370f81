"""What SGLang's two EAGLE-3 classes make of a checkpoint, and what they then compute."""

from __future__ import annotations

from eyas.checkpoint import TargetFacts
from eyas.engines.answer import Answer
from eyas.engines.capture import Capture, replaced_by_target, target_width
from eyas.engines.loading import Loading
from eyas.engines.sglang import claims, latent_claims, latent_loader, loader
from eyas.engines.sglang.boundaries import capture_of, require_layers
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.drafter import Drafter
from eyas.engines.sglang.launch import ALGORITHM_KEY, WINDOW_KEY, uses_graphs
from eyas.engines.sglang.request import Request
from eyas.engines.sglang.targets import require_capture, require_sharing
from eyas.engines.spec_of import (
    embedding_of,
    grouped_attention,
    head_of,
    spec_of,
    vocab_map_of,
)
from eyas.engines.stop import Refused
from eyas.spec import (
    Claim,
    Eagle3Spec,
    Fact,
    Fused,
    LastState,
    LaterNorm,
    Mha,
    Mla,
    Ownership,
    Stage,
    Unfused,
    VocabMap,
    assumed,
    declared,
)


def read_eagle3(request: Request, drafter: Drafter, answer: Answer) -> None:
    """Fill `answer` with what becomes of `drafter`; refuses where SGLang raises."""
    config, contract = drafter.config, request.contract
    answer.slides = (
        declared(True, WINDOW_KEY)
        if request.windowed
        else assumed(False, config.key("layer_types"), whose=config.whose)
    )
    capture = capture_of(
        config.get("eagle_config"),
        contract,
        request.target,
        graphs=uses_graphs(request.settings),
        stop=config.stop,
    )
    answer.claims += _claims(drafter, capture, contract, eagle=request.eagle)
    if request.windowed:
        answer.claims.append(claims.DRAFT_WINDOW)
    spec = _spec(request, drafter, capture)
    answer.spec = spec
    loading = _load(request, drafter)
    if request.eagle and drafter.tied.value:
        raise tied_eagle(drafter.tied)
    answer.landing = loading.landing(replaced_by_target(spec, tied=drafter.tied.value))
    require_sharing(request.target, contract)
    if not request.eagle and drafter.uses_states.value:
        require_capture(request.target, contract)
        require_layers(config.get("eagle_config"), contract, request.target)
    _require_width(request, drafter, capture, spec)


def tied_eagle(tied: Fact[bool]) -> Refused:
    """What the algorithm EAGLE makes of a head that is the embedding."""
    return Refused(
        Stage.JOIN,
        f"{tied.key} makes head and embedding one module, and putting the target's in their place"
        " deletes its weight twice",
        claims.TIED_EAGLE,
    )


def _load(request: Request, drafter: Drafter) -> Loading:
    tensors, contract = request.checkpoint.tensors.values(), request.contract
    if drafter.latent is None:
        return loader.load(tensors, loader.parameters_of(drafter, contract), contract)
    parameters = latent_loader.parameters_of(drafter, drafter.latent, contract)
    return latent_loader.load(tensors, parameters)


def _claims(drafter: Drafter, capture: Capture, contract: Contract, *, eagle: bool) -> list[Claim]:
    used = _class_claims(drafter, contract)
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
        if not contract.switches_states:
            used.append(claims.NO_SWITCH)
    return used


def _class_claims(drafter: Drafter, contract: Contract) -> list[Claim]:
    if drafter.latent is not None:
        return [
            latent_claims.NAMES,
            latent_claims.SKIP,
            latent_claims.MAP,
            latent_claims.RESIDUAL,
            latent_claims.EMBEDDING,
            claims.TIED_HEAD if drafter.tied.value else claims.HEAD,
            latent_claims.WIDTH,
        ]
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
    return used


def _without_fc(
    drafter: Drafter, capture: Capture, target: TargetFacts | None, *, eagle: bool
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


def _spec(request: Request, drafter: Drafter, capture: Capture) -> Eagle3Spec:
    config, checkpoint = drafter.config, request.checkpoint
    conditioning: Fused | LastState | Unfused | None
    conditioning = _without_fc(drafter, capture, request.target, eagle=request.eagle)
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
    is_map = loader.is_map if drafter.latent is None else latent_loader.is_map
    map_name = next((name for name in reversed(tuple(checkpoint.tensors)) if is_map(name)), None)
    vocab_map = vocab_map_of(checkpoint, map_name, drafter.sizes, whose=config.whose)
    if request.eagle:
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
        attention=_attention(drafter),
        rope=drafter.rope,
        norm_before_residual=assumed(False, config.key("norm_before_residual"), whose=config.whose),
        feedback=drafter.feedback,
        vocab_map=vocab_map,
        embedding=embedding,
        head=head,
        target=request.target,
    )


def _attention(drafter: Drafter) -> Mha | Mla:
    if drafter.latent is not None:
        return drafter.latent
    config = drafter.config
    bias = assumed(False, config.key("attention_bias"), whose=config.whose)
    return grouped_attention(drafter.sizes, config, bias=bias)


def _require_width(request: Request, drafter: Drafter, capture: Capture, spec: Eagle3Spec) -> None:
    """Refuse where the first forward pass raises."""
    one = target_width(drafter.sizes, request.target)
    hidden = drafter.sizes.hidden_size.value
    states = 1 if request.eagle or not drafter.uses_states.value else capture.count
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
            claims.width_check(request.contract) if drafter.latent is None else latent_claims.WIDTH,
        )
