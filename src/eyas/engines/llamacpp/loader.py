"""llama.cpp's loader: the tensors that an eagle3 file must have and may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eyas.checkpoint import TensorHeader
from eyas.checkpoint.gguf_rope import FACTORS
from eyas.engines.llamacpp import claims
from eyas.engines.loading import Loading, Misfit
from eyas.engines.parameter import Parameter, whole
from eyas.engines.sizes import Sizes
from eyas.engines.stop import Refused
from eyas.spec import Stage

HEAD, EMBEDDING, MAP = "output.weight", "token_embd.weight", "d2t"
_ALIGNMENT = 32  # bytes
INPUT_NORM = "enc.output_norm.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What decides about the parameters of the model.

    `value_dim` is the width of a head's values, `rotated` the number of channels that RoPE turns,
    and `embedding_rows` the rows of the file's own embedding.
    """

    sizes: Sizes
    input_norm: bool
    value_dim: int
    rotated: int
    embedding_rows: int


def parameters_of(wanted: Wanted, tensors: Mapping[str, TensorHeader]) -> list[Parameter]:
    """The parameters, in the order in which the loader asks for them.

    Those that may be absent are there as the file has them.
    """
    sizes = wanted.sizes
    hidden, inputs = sizes.hidden_size.value, 3 * sizes.target_hidden_size.value
    found = []
    if MAP in tensors:
        found.append(whole(MAP, (sizes.draft_vocab_size.value,), "d2t"))
    found.append(whole("fc.weight", (hidden, inputs), "fc.weight"))
    if wanted.input_norm:
        found.append(whole(INPUT_NORM, (inputs,), "input_norm.weight"))
    found.append(whole("output_norm.weight", (hidden,), "norm.weight"))
    if HEAD in tensors:
        found.append(whole(HEAD, (sizes.draft_vocab_size.value, hidden), "lm_head.weight"))
    if EMBEDDING in tensors:
        found.append(whole(EMBEDDING, (wanted.embedding_rows, hidden), "embed_tokens.weight"))
    for index in range(sizes.num_layers.value):
        found += _layer(wanted, index)
    if FACTORS in tensors:
        found.append(whole(FACTORS, (wanted.rotated // 2,), None))
    return found


def _layer(wanted: Wanted, index: int) -> list[Parameter]:
    sizes = wanted.sizes
    hidden, inner = sizes.hidden_size.value, sizes.intermediate_size.value
    heads = sizes.num_heads.value * sizes.head_dim.value
    kv_heads = sizes.num_kv_heads.value * sizes.head_dim.value
    values = sizes.num_kv_heads.value * wanted.value_dim
    # Every block takes the embedding beside the state, the later ones too.
    shapes = {
        "attn_norm": ("input_layernorm", (hidden,)),
        "attn_norm_2": ("hidden_norm", (hidden,)),
        "attn_q": ("self_attn.q_proj", (heads, 2 * hidden)),
        "attn_k": ("self_attn.k_proj", (kv_heads, 2 * hidden)),
        "attn_v": ("self_attn.v_proj", (values, 2 * hidden)),
        "attn_output": ("self_attn.o_proj", (hidden, heads)),
        "ffn_norm": ("post_attention_layernorm", (hidden,)),
        "ffn_gate": ("mlp.gate_proj", (inner, hidden)),
        "ffn_down": ("mlp.down_proj", (hidden, inner)),
        "ffn_up": ("mlp.up_proj", (inner, hidden)),
    }
    return [
        whole(f"blk.{index}.{name}.weight", shape, f"layers.{index}.{role}.weight")
        for name, (role, shape) in shapes.items()
    ]


def size_of(tensor: TensorHeader, axis: int) -> int:
    """The size of `tensor` along ggml's `axis`, the fastest first: 1 beyond its own."""
    return tensor.shape[-1 - axis] if axis < len(tensor.shape) else 1


def _as_ggml(tensor: TensorHeader, shape: tuple[int, ...]) -> TensorHeader:
    """`tensor` with `shape` where the two are the same to ggml, which has four sizes always."""
    same = _four(tensor.shape) == _four(shape)
    return replace(tensor, shape=shape) if same else tensor


def _four(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + shape


def load(tensors: Mapping[str, TensorHeader], wanted: Wanted) -> Loading:
    """Load `tensors`; refuses one that is missing, of another shape, or not asked for.

    The file is mapped, so that its first tensor must begin at a multiple of 32 bytes.
    """
    parameters = parameters_of(wanted, tensors)
    loading = Loading(parameters)
    for parameter in parameters:
        tensor = tensors.get(parameter.name)
        if tensor is None:
            raise Refused(
                Stage.LOAD, f"tensor {parameter.name} is missing from the file", claims.SHAPES
            )
        try:
            loading.place(_as_ggml(tensor, parameter.shape), parameter.name)
        except Misfit as misfit:
            raise Refused(Stage.LOAD, str(misfit), claims.SHAPES) from None
    if FACTORS in tensors and tensors[FACTORS].dtype != "F32":
        raise Refused(
            Stage.LOAD,
            f"tensor {FACTORS} holds {tensors[FACTORS].dtype} numbers, and must hold F32",
            claims.FACTORS,
        )
    surplus = [name for name in tensors if name not in loading]
    if surplus:
        raise Refused(
            Stage.LOAD,
            f"tensor {surplus[0]} is in the file and nothing asks for it"
            + (f", nor for {len(surplus) - 1} more" if surplus[1:] else ""),
            claims.SURPLUS,
        )
    starts = [tensor.start for tensor in tensors.values() if tensor.start is not None]
    if starts and min(starts) % _ALIGNMENT:
        raise Refused(
            Stage.LOAD, f"the first tensor begins at byte {min(starts)}", claims.ALIGNMENT
        )
    return loading
