"""Sound drafters to mutate: tiny ones in every dialect that is written, and large sparse ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.errors import ConversionError

Tensor = tuple[str, tuple[int, ...], bytes | None]  # dtype, shape, bytes (None: zeros, a hole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A checkpoint that eyas reads, and the config of a target that it fits.

    `file` is the one that is checked, None where it is the directory.
    """

    name: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    target: Mapping[str, Any]
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The sizes that the tensors of a drafter follow from."""

    hidden: int = 8
    inner: int = 12
    heads: int = 2
    kv_heads: int = 1
    head_dim: int = 4
    vocab: int = 32
    draft_vocab: int = 16
    target_layers: int = 12

    def config(self) -> dict[str, Any]:
        """The flat config, without the switches."""
        return {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": 1,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "vocab_size": self.vocab,
            "draft_vocab_size": self.draft_vocab,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "max_position_embeddings": 512,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
        }

    def target(self, architecture: str) -> dict[str, Any]:
        """The config of a target as wide as the drafter."""
        return {
            "architectures": [architecture],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.target_layers,
            "num_attention_heads": self.heads,
            "vocab_size": self.vocab,
            "max_position_embeddings": 2048,
            "rope_theta": 10000.0,
        }

    def tensors(self, layer: str = "midlayer.", states: int = 3) -> dict[str, Tensor]:
        """The tensors that every EAGLE-3 drafter of these sizes has."""
        h, kv = self.hidden, self.kv_heads * self.head_dim
        q = self.heads * self.head_dim
        shapes = {
            "fc.weight": (h, states * h),
            "norm.weight": (h,),
            "lm_head.weight": (self.draft_vocab, h),
            **{f"{layer}{name}.weight": (h,) for name in _NORMS},
            f"{layer}self_attn.q_proj.weight": (q, 2 * h),
            f"{layer}self_attn.k_proj.weight": (kv, 2 * h),
            f"{layer}self_attn.v_proj.weight": (kv, 2 * h),
            f"{layer}self_attn.o_proj.weight": (h, q),
            f"{layer}mlp.gate_proj.weight": (self.inner, h),
            f"{layer}mlp.up_proj.weight": (self.inner, h),
            f"{layer}mlp.down_proj.weight": (h, self.inner),
        }
        return {name: ("BF16", shape, None) for name, shape in shapes.items()}

    def vocab_map(self, *, absolute: bool = False) -> dict[str, Tensor]:
        """d2t and t2d where every second id, or so, of the target's is drafted."""
        step = self.vocab // self.draft_vocab
        ids = [i * step for i in range(self.draft_vocab)]
        stored = ids if absolute else [number - i for i, number in enumerate(ids)]
        kept = bytearray(self.vocab)
        for number in ids:
            kept[number] = 1
        return {
            "d2t": ("I64", (len(stored),), struct.pack(f"<{len(stored)}q", *stored)),
            "t2d": ("BOOL", (self.vocab,), bytes(kept)),
        }


_NORMS = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
_TINY = Frame()
_LARGE = Frame(
    hidden=7168,
    inner=18432,
    heads=64,
    kv_heads=64,
    head_dim=112,
    vocab=163840,
    draft_vocab=163840,
    target_layers=61,
)
_IDS = [1, 5, 8]


def specimens(workplace: Path) -> tuple[Specimen, ...]:
    """Every specimen, always in the same order; `workplace` is a directory for files."""
    found = []
    for index, original in enumerate(_originals()):
        found.append(original)
        directory = write_sparse(
            workplace / f"specimen-{index}",
            original.config,
            {name: (dtype, shape) for name, (dtype, shape, _) in original.tensors.items()},
            {name: data for name, (_, _, data) in original.tensors.items() if data is not None},
        )
        found.extend(_in_other_dialects(original, directory))
    return tuple(found)


def _in_other_dialects(original: Specimen, directory: Path) -> Iterator[Specimen]:
    """`original` as each dialect writes it that can."""
    checkpoint = open_checkpoint(directory)
    source, spec = dialects.read(checkpoint)
    names = {role: name for name, role in source.roles(checkpoint).items()}
    for dialect in dialects.DIALECTS:
        try:
            config, written = dialect.write(spec, names)
        except ConversionError:
            continue
        yield Specimen(
            name=f"{original.name} as {dialect.name}",
            config=json.loads(json.dumps(config)),
            tensors={name: original.tensors[names[role]] for role, name in written.items()},
            target=original.target,
        )


def _originals() -> Iterator[Specimen]:
    """Drafters of each kind, in the form that they are usually met in."""
    target = _TINY.target("LlamaForCausalLM")

    def tiny(
        name: str,
        tensors: Mapping[str, Tensor],
        *,
        without: tuple[str, ...] = (),
        **config: Any,
    ) -> Specimen:
        kept = {k: v for k, v in tensors.items() if k not in without}
        return Specimen(name=name, config=_TINY.config() | config, tensors=kept, target=target)

    def norms(names: Mapping[str, int]) -> dict[str, Tensor]:
        return {f"{name}.weight": ("BF16", (size,), None) for name, size in names.items()}

    plain, numbered = _TINY.tensors(), _TINY.tensors("layers.0.")
    ids = _TINY.vocab_map()
    yield tiny("midlayer", plain | ids)
    nested = {"eagle_aux_hidden_state_layer_ids": _IDS, "use_aux_hidden_state": True}
    yield tiny("nested ids", numbered | ids, eagle_config=nested)
    yield tiny("absolute ids", plain | _TINY.vocab_map(absolute=True))
    wrapped = {f"model.{name}": tensor for name, tensor in numbered.items()}
    yield tiny("wrapped", wrapped | ids, architectures=["LlamaEagle3DraftModel"])
    heads = norms({f"layers.0.self_attn.{part}_norm": _TINY.head_dim for part in "qk"})
    yield tiny(
        "qwen3",
        numbered | heads | ids,
        architectures=["Qwen3Eagle3Model"],
        model_type="qwen3",
        target_layer_ids=_IDS,
    )
    later = norms({f"layers.1.{name}": _TINY.hidden for name in _NORMS})
    second = {
        name.replace("layers.0.", "layers.1."): (dtype, shape, data)
        for name, (dtype, shape, data) in _TINY.tensors("layers.0.").items()
        if ".mlp." in name or "o_proj" in name
    }
    for part, rows in (("q", 8), ("k", 4), ("v", 4)):
        second[f"layers.1.self_attn.{part}_proj.weight"] = ("BF16", (rows, _TINY.hidden), None)
    yield tiny("two layers", numbered | second | later | ids, num_hidden_layers=2)
    states = norms({f"fc_norm.{i}": _TINY.hidden for i in range(3)})
    yield tiny(
        "3.1",
        plain | states | norms({"input_norm": 3 * _TINY.hidden}) | ids,
        fc_norm=True,
        norm_before_fc=True,
        norm_output=True,
        norm_before_residual=True,
        rope_parameters={"rope_type": "yarn", "rope_theta": 5e5, "factor": 32.0},
    )
    whole: dict[str, Tensor] = {
        "lm_head.weight": ("F32", (_TINY.vocab, _TINY.hidden), None),
        "embed_tokens.weight": ("F16", (_TINY.vocab, _TINY.hidden), None),
    }
    yield tiny("whole vocabulary", plain | whole, draft_vocab_size=_TINY.vocab)
    yield tiny("no head", plain, without=("lm_head.weight",), draft_vocab_size=None)
    fused: dict[str, Tensor] = {
        "midlayer.self_attn.qkv_proj.weight": ("BF16", (16, 16), None),
        "midlayer.self_attn.qkv_proj.bias": ("BF16", (16,), None),
        "midlayer.mlp.gate_up_proj.weight": ("BF16", (24, 8), None),
        "fc.bias": ("BF16", (8,), None),
    }
    yield tiny("fused and biased", plain | fused | ids, bias=True, attention_bias=True)
    yield tiny(
        "last state",
        plain | ids,
        without=("fc.weight",),
        eagle_config={"use_aux_hidden_state": False},
    )
    yield _latent(target)
    yield from _named(target)
    yield Specimen(
        name="large",
        config=_LARGE.config()
        | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 29, 57]}},
        tensors=_LARGE.tensors("layers.0."),
        target={"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25"}
        | {"text_config": _LARGE.target("DeepseekV3ForCausalLM")},
    )


def _latent(target: Mapping[str, Any]) -> Specimen:
    """A drafter with latent attention, as Kimi's."""
    sizes = {"q_lora_rank": 6, "kv_lora_rank": 4, "qk_nope_head_dim": 4}
    sizes |= {"qk_rope_head_dim": 2, "v_head_dim": 4, "num_key_value_heads": 2}
    prefix = "midlayer.self_attn."
    shapes = {
        "q_a_proj": (6, 16),
        "q_a_layernorm": (6,),
        "q_b_proj": (12, 6),
        "kv_a_proj_with_mqa": (6, 16),
        "kv_a_layernorm": (4,),
        "kv_b_proj": (16, 4),
        "o_proj": (8, 8),
    }
    outside = {k: v for k, v in _TINY.tensors().items() if "self_attn" not in k}
    inside: dict[str, Tensor] = {
        f"{prefix}{k}.weight": ("BF16", v, None) for k, v in shapes.items()
    }
    config = _TINY.config() | sizes
    config |= {"architectures": ["Eagle3DeepseekV2ForCausalLM"], "model_type": "kimi_k2"}
    return Specimen(
        name="latent", config=config, tensors=outside | inside | _TINY.vocab_map(), target=target
    )


def _named(target: Mapping[str, Any]) -> Iterator[Specimen]:
    """Kinds that are not EAGLE-3."""
    tensors = _TINY.tensors("layers.0.", states=5)
    inner = {"target_layer_ids": [1, 3, 5, 7, 9], "mask_token_id": 31}
    block = {k: v for k, v in tensors.items() if not k.startswith("lm_head")}
    for architecture in ("DFlashDraftModel", "DFlash2DraftModel", "Qwen3DSparkModel"):
        yield Specimen(
            name=architecture,
            config=_TINY.config()
            | {"architectures": [architecture], "model_type": "qwen3", "block_size": 4}
            | {"dflash_config": inner, "num_target_layers": 12},
            tensors=block,
            target=target,
        )
    masked: Tensor = ("BF16", (1, 1, 3 * _TINY.hidden), None)
    yield Specimen(
        name="P-EAGLE",
        config=_TINY.config() | {"architectures": ["PEagleDraftModel"], "mask_token_id": 31},
        tensors=_TINY.tensors("layers.0.") | _TINY.vocab_map() | {"mask_hidden": masked},
        target=target,
    )
    yield Specimen(
        name="native MTP",
        config=_TINY.config() | {"architectures": ["Qwen3NextMTP"]},
        tensors={f"mtp.{name}": tensor for name, tensor in tensors.items()},
        target=target,
    )
