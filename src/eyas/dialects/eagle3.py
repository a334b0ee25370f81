"""Reading an Eagle3Spec from the facts that the EAGLE-3 dialects state in the same way.

Where a tensor and a flag disagree on whether a part exists, the tensor has it: what was not
trained would not be stored. Sizes are taken from the config, and from shapes where it is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.dialects.attention import read_attention
from eyas.dialects.keys import Keys, first, needed, or_absent
from eyas.dialects.ownership import read_embedding, read_head
from eyas.dialects.rope import read_rope
from eyas.dialects.tensors import Tensors
from eyas.dialects.vocabulary import read_vocab_map, read_vocab_order, read_vocab_sizes
from eyas.spec import (
    Boundaries,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    absent,
    assumed,
    inferred,
)

LLAMA_CONFIG = "transformers' LlamaConfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one dialect keeps the facts of a checkpoint, and whose defaults fill the rest.

    `layer` holds the decoder layer's keys, `flags` the sections that may hold the drafter's own
    switches, in order of precedence.
    """

    tensors: Tensors
    layer: Keys
    flags: tuple[Keys, ...]
    boundaries: Fact[Boundaries]
    target_name: Fact[str] | None
    whose: str
    norm_before_residual_whose: str
    rope_theta: float
    rope_theta_whose: str

    def flag(self, key: str) -> Fact[bool] | None:
        """The flag in the first section that has it."""
        return first(section.flag(key) for section in self.flags)

    def flag_place(self, key: str) -> str:
        """Where the flag would be."""
        return self.flags[-1].place(key)

    def switch(self, key: str) -> Fact[bool]:
        """A flag that is off where it is absent."""
        return self.flag(key) or assumed(False, self.flag_place(key), whose=self.whose)


def read_eagle3(source: Source) -> Eagle3Spec:
    """The drafter as trained; raises CheckpointError when a size cannot be known."""
    tensors, layer, drafter = source.tensors, source.layer, source.flags[-1]
    hidden_size = needed(
        layer.size("hidden_size") or tensors.rows("norm.weight") or tensors.rows("fc.weight"),
        layer.place("hidden_size"),
    )
    target_hidden_size = drafter.size("target_hidden_size") or assumed(
        hidden_size.value, drafter.place("target_hidden_size"), whose=source.whose
    )
    num_layers = (
        tensors.layers()
        or layer.size("num_hidden_layers")
        or assumed(1, layer.place("num_hidden_layers"), whose="EAGLE-3 (arXiv 2503.01840)")
    )
    vocab_size, draft_vocab_size = read_vocab_sizes(tensors, layer, drafter, whose=source.whose)
    vocab_map = read_vocab_map(
        tensors.checkpoint, dict(tensors.by_role), vocab_size.value, draft_vocab_size.value
    )
    norm_output = source.switch("norm_output")
    return Eagle3Spec(
        hidden_size=hidden_size,
        target_hidden_size=target_hidden_size,
        intermediate_size=needed(
            layer.size("intermediate_size")
            or tensors.rows("layers.0.mlp.gate_proj.weight")
            or tensors.quotient("layers.0.mlp.gate_up_proj.weight", 2),
            layer.place("intermediate_size"),
        ),
        num_layers=num_layers,
        later_norm=_later_norm(tensors, num_layers),
        attention=read_attention(tensors, layer, hidden_size.value),
        conditioning=_conditioning(source, hidden_size.value, target_hidden_size.value),
        activation=layer.text("hidden_act")
        or assumed("silu", layer.place("hidden_act"), whose=LLAMA_CONFIG),
        rms_norm_eps=layer.number("rms_norm_eps")
        or assumed(1e-6, layer.place("rms_norm_eps"), whose=LLAMA_CONFIG),
        rope=read_rope(layer, theta=source.rope_theta, whose=source.rope_theta_whose),
        max_position_embeddings=or_absent(
            layer.size("max_position_embeddings"), layer.place("max_position_embeddings")
        ),
        norm_before_residual=source.flag("norm_before_residual")
        or assumed(
            False,
            source.flag_place("norm_before_residual"),
            whose=source.norm_before_residual_whose,
        ),
        feedback=norm_output.map(lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM),
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab_size,
        vocab_map=vocab_map,
        vocab_order=read_vocab_order(tensors.checkpoint, tensors.by_role, vocab_map.value),
        embedding=read_embedding(tensors),
        head=read_head(
            tensors,
            source.flag("tie_word_embeddings") or layer.flag("tie_word_embeddings"),
            reduced=vocab_size.value != draft_vocab_size.value,
            place=source.flag_place("draft_vocab_size"),
        ),
        target_name=or_absent(
            source.target_name, drafter.place("speculators_config.verifier.name_or_path")
        ),
    )


def _later_norm(tensors: Tensors, num_layers: Fact[int]) -> Fact[LaterNorm | None]:
    if num_layers.value == 1:
        return absent(num_layers.key)
    for norm in LaterNorm:  # a layer that holds both was padded for a reader that needs both names
        role = f"layers.1.{norm}.weight"
        if tensors.has(role):
            return inferred(norm, tensors.place(role))
    place = tensors.place(f"layers.1.{LaterNorm.INPUT_LAYERNORM}.weight")
    return assumed(LaterNorm.INPUT_LAYERNORM, place, whose="speculators 0.9.0")


def _conditioning(source: Source, hidden_size: int, target_hidden_size: int) -> Fused | LastState:
    tensors = source.tensors
    use_aux = source.flag("use_aux_hidden_state")
    if use_aux is not None and not use_aux.value and not tensors.has("fc.weight"):
        return LastState(
            reason=use_aux.map(lambda _: "use_aux_hidden_state is false"),
            after_final_norm=assumed(True, use_aux.key, whose="SGLang and vLLM"),
        )
    return Fused(
        boundaries=source.boundaries,
        count=_count(source, hidden_size, target_hidden_size),
        input_norm=tensors.present("input_norm.weight") or source.switch("norm_before_fc"),
        fc_norm=tensors.present("fc_norm.0.weight")
        or source.flag("fc_norm")
        or source.flag("use_aux_norm")  # SGLang's older name of it
        or source.switch("fc_norm"),
        bias=tensors.present("fc.bias") or source.switch("bias"),
    )


def _count(source: Source, hidden_size: int, target_hidden_size: int) -> Fact[int]:
    rows, columns = source.tensors.rows("fc.weight"), source.tensors.columns("fc.weight")
    # A matrix with other rows, such as a transposed one, tells nothing by its columns.
    if rows and columns and rows.value == hidden_size and columns.value % target_hidden_size == 0:
        return columns.map(lambda width: width // target_hidden_size)
    stated = source.flags[-1].size("num_aux_hidden_states")
    if stated is not None:
        return stated
    boundaries = source.boundaries
    if isinstance(boundaries.value, tuple):
        return boundaries.map(lambda _: len(boundaries.value))  # type: ignore[arg-type]
    return assumed(3, boundaries.key, whose="EAGLE-3 (arXiv 2503.01840)")
