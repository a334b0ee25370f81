"""Reading a GGUF drafter as llama.cpp does: keys, tensors, and what it then computes."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.answer import Answer
from eyas.engines.config import ConfigView
from eyas.engines.launch import Settings, context_of
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.graph import Graph, require_graph
from eyas.engines.llamacpp.key_types import PREFIX
from eyas.engines.llamacpp.keys import (
    boundaries_of,
    keys_of,
    require_counted,
    rope_of,
)
from eyas.engines.llamacpp.launch import CONTEXT
from eyas.engines.llamacpp.loader import EMBEDDING, HEAD, MAP, Wanted, load, size_of
from eyas.engines.llamacpp.tokenizer import vocabulary_of
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
        wanted = _wanted(view, checkpoint, sizes)
        answer.landing = load(checkpoint.tensors, wanted).landing({})
        require_graph(
            Graph(
                checkpoint=checkpoint,
                view=view,
                wanted=wanted,
                boundaries=boundaries,
                target=target,
            )
        )
    except Refused as end:
        answer.refuse(end)
    return answer.served("llamacpp", version, None, context=context_of(settings, CONTEXT))


def _sizes(view: ConfigView, checkpoint: Checkpoint) -> Sizes:
    require_counted(view)
    vocab = vocabulary_of(checkpoint, view.whose)
    header = checkpoint.tensors.get(MAP)
    draft_vocab = vocab
    if header is not None:
        draft_vocab = inferred(size_of(header, 0), checkpoint.place(MAP))
    sizes = sizes_of(view, draft_vocab_size=draft_vocab)
    later = checkpoint.config.get(f"{PREFIX}nextn_predict_layers", 0)  # are not the class's own
    layers = sizes.num_layers.map(lambda count: count - later)
    return replace(sizes, vocab_size=vocab, num_layers=layers)


def _wanted(view: ConfigView, checkpoint: Checkpoint, sizes: Sizes) -> Wanted:
    embedding = checkpoint.tensors.get(EMBEDDING)
    return Wanted(
        sizes=sizes,
        input_norm=view.flag("norm_before_fc").value,
        value_dim=view.whole(
            "value_length", sizes.hidden_size.value // sizes.num_heads.value
        ).value,
        rotated=view.whole("rotated", sizes.head_dim.value).value,
        embedding_rows=0 if embedding is None else size_of(embedding, 1),
    )


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
