"""The loaders of SGLang's LlamaForCausalLM and LlamaForCausalLMEagle, and their parameters.

Neither is an EAGLE-3 class, and SGLang builds both for EAGLE-3 checkpoints whose `architectures`
names them. No parameter has a role: they are no part of an EAGLE-3 drafter's arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from eyas.checkpoint import TensorHeader
from eyas.engines.config import ConfigView
from eyas.engines.decoder import Block, feed_forward, fused_name
from eyas.engines.loading import Loading
from eyas.engines.parameter import Parameter, vocabulary, whole
from eyas.engines.sglang import llama_claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.loader import FREQUENCIES, MASK, put
from eyas.engines.sizes import Sizes
from eyas.engines.stop import Refused
from eyas.spec import Fate, Initialisation, Stage

_LAYER = re.compile(r"layers\.(\d+)\.")
_SKIPPED = ("projector", "rotary_emb.cos_cached", "rotary_emb.sin_cached")


def parameters_of(
    config: ConfigView, sizes: Sizes, contract: Contract, *, eagle: bool
) -> list[Parameter]:
    """Every parameter of LlamaForCausalLM, or of LlamaForCausalLMEagle."""
    hidden = sizes.hidden_size.value
    rows = sizes.vocab_size.value
    biased = config.flag("attention_bias").value or config.flag("bias").value
    found = [vocabulary("model.embed_tokens.weight", rows, hidden, None)]
    for index in range(sizes.num_layers.value):
        block = Block(prefix=f"model.layers.{index}", role=None, pads=contract.zero_pads)
        found += _attention(block, sizes, contract.bias if biased else None)
        found += feed_forward(block, hidden, sizes.intermediate_size.value, bias=False)
        norms = ("input_layernorm", "post_attention_layernorm")
        found += [block.gain(name, hidden) for name in norms[eagle and index == 0 :]]
    if eagle:
        random = Initialisation.RANDOM
        found.append(whole("model.fc.weight", (hidden, 2 * hidden), None, initialisation=random))
        found.append(whole("model.fc.bias", (hidden,), None, initialisation=random))
        rows = config.whole("hot_vocab_size", rows).value
    else:
        found.append(Block(prefix="model", role=None, pads=False).gain("norm", hidden))
    if not config.flag("tie_word_embeddings").value:
        found.append(vocabulary("lm_head.weight", rows, hidden, None))
    return found


def _attention(block: Block, sizes: Sizes, bias: Initialisation | None) -> list[Parameter]:
    hidden, size = sizes.hidden_size.value, sizes.head_dim.value
    heads, kv_heads = sizes.num_heads.value * size, sizes.num_kv_heads.value * size
    parts = {"q": heads, "k": kv_heads, "v": kv_heads}
    found = [
        block.fused("self_attn.qkv_proj", parts, hidden, pads=False),
        block.linear("self_attn.o_proj", hidden, heads),
    ]
    if bias is not None:
        found.append(block.fused("self_attn.qkv_proj", parts, None, pads=False, holds=bias))
        found.append(block.bias("self_attn.o_proj", hidden, bias))
    return found


def load(
    tensors: Iterable[TensorHeader],
    parameters: Iterable[Parameter],
    config: ConfigView,
    contract: Contract,
    *,
    eagle: bool,
) -> Loading:
    """Load `tensors` as load_weights does; refuses where it raises."""
    loading = Loading(parameters)
    layers = config.whole("num_hidden_layers").value
    tied = config.flag("tie_word_embeddings").value
    for tensor in tensors:
        if eagle and "lm_head" in tensor.name:
            loading.leave(tensor, Fate.LOST, "this class never loads a head: skipped, no log")
            continue
        name = f"model.{tensor.name}" if eagle else tensor.name
        left = _left_out(name, layers=None if eagle else layers, tied=tied)
        if left is None:
            _place(loading, tensor, name, contract)
        else:
            loading.leave(tensor, *left)
    return loading


def _left_out(name: str, *, layers: int | None, tied: bool) -> tuple[Fate, str] | None:
    """The fate of a tensor that goes into no parameter by its name alone, and why."""
    layer = _LAYER.search(name)
    if layer and layers is not None and int(layer[1]) >= layers:
        return Fate.LOST, f"there are {layers} layers: skipped, no log"
    if "rotary_emb.inv_freq" in name:
        return FREQUENCIES
    if any(part in name for part in _SKIPPED):
        return Fate.LOST, "skipped by its name, no log"
    if tied and "lm_head.weight" in name:
        return Fate.LOST, "tie_word_embeddings is true: skipped, no log"
    if "scale" in name:
        return Fate.LOST, "nothing is quantised here, and no scale is a parameter"
    return None


def _place(loading: Loading, tensor: TensorHeader, name: str, contract: Contract) -> None:
    full, key = fused_name(name)
    if full in loading:
        put(loading, tensor, full, key)
        return
    if full.endswith((".bias", ".kv_scale")):
        loading.leave(tensor, Fate.LOST, f"{full} is no parameter: skipped, no log")
        return
    if key is not None and not contract.skips_unknown_parts:
        raise Refused(
            Stage.LOAD,
            f"tensor {tensor.name} becomes {full}, which is no parameter",
            llama_claims.UNKNOWN_PART,
        )
    loading.log(f"Parameter {full} not found in params_dict")
    if "t2d" in name:
        loading.leave(tensor, *MASK)
    else:
        loading.leave(tensor, Fate.LOST, f"{full} is no parameter: skipped, with a warning")
