"""Reading a GGUF drafter as llama.cpp does: keys, tensors, and what it then computes."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.answer import Answer
from eyas.engines.config import ConfigView
from eyas.engines.launch import Settings, context_of
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.keys import (
    boundaries_of,
    keys_of,
    require_counted,
    rope_of,
    vocabulary_of,
)
from eyas.engines.llamacpp.launch import CONTEXT
from eyas.engines.llamacpp.loader import EMBEDDING, HEAD, MAP, Wanted, load
from eyas.engines.llamacpp.targets import require_capture
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.spec_of import grouped_attention, spec_of
from eyas.engines.stop import Refused
from eyas.spec import (
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LaterNorm,
    Ownership,
    Served,
    Stage,
    VocabMap,
    assumed,
    inferred,
)

_ALWAYS = (
    claims.SPEC_TYPE,
    claims.EAGLE3_KEYS,
    claims.TENSORS,
    claims.SURPLUS,
    claims.LAYER_IDS,
    claims.RESIDUAL,
    claims.FEEDBACK,
    claims.MAP,
    claims.EMBEDDING,
    claims.HEAD,
    claims.ROPE,
)


def read(
    version: str,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    settings: Settings,
) -> Served:
    """What build `version` of llama.cpp makes of `checkpoint`; raises NotCovered."""
    del runner  # it has none
    answer = Answer()
    try:
        view = keys_of(checkpoint, version, None if target is None else target.num_layers)
        boundaries = boundaries_of(view)
        sizes = _sizes(view, checkpoint)
        answer.claims += _ALWAYS
        answer.slides = assumed(False, view.key("sliding_window"), whose=view.whose)
        answer.spec = _spec(view, checkpoint, sizes, boundaries, target)
        wanted = Wanted(sizes=sizes, input_norm=view.flag("norm_before_fc").value)
        answer.landing = load(checkpoint.tensors, wanted).landing({})
        _require_graph(checkpoint, sizes)
        _require_target(checkpoint, sizes, boundaries, target)
    except Refused as end:
        answer.refuse(end)
    return answer.served("llamacpp", version, None, context=context_of(settings, CONTEXT))


def _sizes(view: ConfigView, checkpoint: Checkpoint) -> Sizes:
    require_counted(view)
    vocab = vocabulary_of(view)
    header = checkpoint.tensors.get(MAP)
    draft_vocab = vocab
    if header is not None:
        draft_vocab = inferred(header.shape[0] if header.shape else 1, checkpoint.place(MAP))
    return replace(sizes_of(view, draft_vocab_size=draft_vocab), vocab_size=vocab)


def _spec(
    view: ConfigView,
    checkpoint: Checkpoint,
    sizes: Sizes,
    boundaries: Fact[tuple[int, ...]],
    target: TargetFacts | None,
) -> Eagle3Spec:
    whose = view.whose

    def never(name: str) -> Fact[bool]:
        return assumed(False, checkpoint.place(name), whose=whose)

    def owner(name: str) -> Fact[Ownership]:
        if name in checkpoint.tensors:
            return inferred(Ownership.OWN, checkpoint.place(name))
        return assumed(Ownership.TARGET, checkpoint.place(name), whose=whose)

    form = VocabMap.ABSOLUTE if MAP in checkpoint.tensors else VocabMap.IDENTITY
    return spec_of(
        config=view,
        sizes=sizes,
        conditioning=Fused(
            boundaries=boundaries.map(lambda ids: ids),
            count=boundaries.map(len),
            input_norm=view.flag("norm_before_fc"),
            fc_norm=never("fc_norm.0.weight"),
            bias=never("fc.bias"),
        ),
        attention=grouped_attention(sizes, view, bias=never("blk.0.attn_q.bias")),
        # A second layer never comes to run: the graph asserts that there is one.
        later_norm=LaterNorm.HIDDEN_NORM,
        rope=rope_of(view, checkpoint, sizes.head_dim.value),
        norm_before_residual=view.flag("norm_before_residual"),
        feedback=assumed(Feedback.PRE_NORM, view.key("norm_output"), whose=whose),
        vocab_map=inferred(form, checkpoint.place(MAP)),
        embedding=owner(EMBEDDING),
        head=owner(HEAD),
        target=target,
    )


def _require_graph(checkpoint: Checkpoint, sizes: Sizes) -> None:
    """Refuse where building the graph aborts, once the weights are loaded."""
    layers = sizes.num_layers
    if layers.value != 1:
        raise Refused(
            Stage.LOAD, f"{layers.key} is {layers.value}, and one layer is drawn", claims.ONE_LAYER
        )
    header = checkpoint.tensors.get(MAP)
    if header is not None and header.dtype != "I64":
        raise Refused(
            Stage.LOAD,
            f"{checkpoint.place(MAP)} holds {header.dtype} numbers, and must hold I64",
            claims.MAP,
        )


def _require_target(
    checkpoint: Checkpoint,
    sizes: Sizes,
    boundaries: Fact[tuple[int, ...]],
    target: TargetFacts | None,
) -> None:
    """Refuse a target that the drafter does not fit."""
    vocab, draft_vocab = sizes.vocab_size, sizes.draft_vocab_size
    if HEAD not in checkpoint.tensors and draft_vocab.value != vocab.value:
        raise Refused(
            Stage.LOAD,
            f"the file has no {HEAD}, the target's has {vocab.value} rows, and {MAP}"
            f" {draft_vocab.value}",
            claims.HEAD,
        )
    if target is None:
        return
    outside = [
        k
        for k in boundaries.value
        if target.num_layers is not None and not 0 <= k <= target.num_layers
    ]
    if outside:
        raise Refused(
            Stage.LOAD,
            f"{boundaries.key} has {outside[0]}, and the target has {target.num_layers} layers",
            claims.LAYER_IDS,
        )
    require_capture(target)
    wide, hidden, states = target.hidden_size, sizes.hidden_size, sizes.target_hidden_size
    if wide is None:
        return
    if wide != states.value:
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target's states are {wide} wide, and {states.key} is {states.value}",
            claims.WIDTH,
        )
    borrowed = [name for name in (EMBEDDING, HEAD) if name not in checkpoint.tensors]
    if borrowed and wide != hidden.value:
        raise Refused(
            Stage.LOAD,
            f"the file has no {borrowed[0]}, the target's is {wide} wide, and {hidden.key} is"
            f" {hidden.value}",
            claims.EMBEDDING if borrowed[0] == EMBEDDING else claims.HEAD,
        )
