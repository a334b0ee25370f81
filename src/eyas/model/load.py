"""A target by directory or Hub id: the fast path where it applies, else transformers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from eyas.checkpoint.hub import Part, parse_hub_id
from eyas.checkpoint.place import locate
from eyas.errors import CheckpointError, TargetError
from eyas.model.llama import LlamaForm, LlamaTarget
from eyas.model.pretrained import read_pretrained
from eyas.model.target import LoadedFacts, Target, TargetSizes
from eyas.spec import Rope

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

# The tokenizer, its chat template and the generation config.
BESIDE_THE_WEIGHTS = ("*.json", "*.jinja", "*.model", "*.txt")


def target_directory(name: str | Path) -> Path:
    """The local directory of a target: itself, `smollm2`, or a Hub snapshot (`org/name[@rev]`).

    Raises TargetError when it is none of these, FetchError when a download fails.
    """
    path = Path(name)
    if path.is_dir():
        return path
    if str(name) == "smollm2":
        from eyas.model.smollm2 import ensure_smollm2

        return ensure_smollm2()
    return _fetched(str(name))


def load_target(
    name: str | Path,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Target:
    """The target `name` (directory, `smollm2`, or Hub id) in `dtype` on `device`.

    Raises TargetError when it cannot be found, or its weights do not match its config.
    """
    directory = target_directory(name)
    config = _read_config(directory)
    if is_compact(config):
        return _load_llama(str(name), directory, config, dtype, torch.device(device))
    from eyas.model.generic import load_generic

    eos_ids = eos_ids_of(directory, config)
    return load_generic(
        str(name), directory, eos_ids=eos_ids, dtype=dtype, device=torch.device(device)
    )


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """The target's tokenizer."""
    from transformers import AutoTokenizer

    directory = target_directory(name)
    tokenizer: PreTrainedTokenizerBase = read_pretrained(AutoTokenizer, directory, "tokenizer")
    return tokenizer


def is_compact(config: PretrainedConfig) -> bool:
    """Whether the compact Llama computes exactly what this config means."""
    if config.model_type not in ("llama", "qwen2", "qwen3"):
        return False
    if getattr(config, "quantization_config", None) is not None:
        return False  # transformers may know how to read such weights
    rope = config.rope_parameters or {}
    layer_types = getattr(config, "layer_types", None) or ()
    return (
        rope.get("rope_type") in ("default", "linear", "llama3", "yarn")
        and rope.get("rope_theta") is not None
        and rope.get("partial_rotary_factor") in (None, 1.0)
        and config.hidden_act == "silu"
        and not getattr(config, "attention_bias", False)
        and not getattr(config, "mlp_bias", False)
        and set(layer_types) <= {"full_attention"}
    )


def read_weights(directory: Path) -> dict[str, Tensor]:
    """Every tensor of the directory's safetensors files."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    weights: dict[str, Tensor] = {}
    for file in _weight_files(directory):
        try:
            weights.update(load_file(file))
        except (OSError, SafetensorError) as error:
            raise TargetError(f"`{file}` cannot be read as safetensors: {error}") from error
    return weights


def eos_ids_of(directory: Path, config: PretrainedConfig) -> tuple[int, ...]:
    """The ids that end an answer: the generation config's, else the config's, else none."""
    from transformers import GenerationConfig

    declared: Any = None
    if (directory / "generation_config.json").is_file():
        declared = GenerationConfig.from_pretrained(directory).eos_token_id
    # a wrapper of a language model leaves the id to its text config
    for stating in (config, config.get_text_config()):
        if declared is None:
            declared = getattr(stating, "eos_token_id", None)
    if declared is None:
        return ()
    return (declared,) if isinstance(declared, int) else tuple(declared)


def _weight_files(directory: Path) -> Iterator[Path]:
    import json

    index = directory / "model.safetensors.index.json"
    if index.is_file():
        yield from (
            directory / n for n in sorted(set(json.loads(index.read_text())["weight_map"].values()))
        )
        return
    single = directory / "model.safetensors"
    if not single.is_file():
        raise TargetError(f"`{directory}` has no model.safetensors: is it a model directory?")
    yield single


def _read_config(directory: Path) -> PretrainedConfig:
    from transformers import AutoConfig

    config: PretrainedConfig = read_pretrained(AutoConfig, directory, "config")
    return config


def _load_llama(
    name: str, directory: Path, config: PretrainedConfig, dtype: torch.dtype, device: torch.device
) -> LlamaTarget:
    facts = LoadedFacts(
        name=name,
        directory=directory,
        architecture=(config.architectures or ["LlamaForCausalLM"])[0],
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        vocab_size=config.vocab_size,
        eos_ids=eos_ids_of(directory, config),
        dtype=dtype,
    )
    heads, rope = config.num_attention_heads, dict(config.rope_parameters)
    sizes = TargetSizes(
        heads=heads,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        intermediate=config.intermediate_size,
        rms_eps=config.rms_norm_eps,
        rope_theta=rope["rope_theta"],
        max_positions=config.max_position_embeddings,
    )
    form = LlamaForm(
        rope=Rope(
            theta=rope.pop("rope_theta"),
            kind=rope.pop("rope_type"),
            scaling={name: number for name, number in rope.items() if name != "type"},
        ),
        qkv_bias=config.model_type == "qwen2",
        qk_norm=config.model_type == "qwen3",
    )
    tied = config.tie_word_embeddings
    return LlamaTarget(facts, sizes, read_weights(directory), device, tied=tied, form=form)


def _fetched(name: str) -> Path:
    if parse_hub_id(name) is None:
        raise TargetError(
            f"no target `{name}`: give a local directory, `smollm2`, or a Hub id such as `org/name`"
        )
    try:
        return locate(name, Part.WEIGHTS, also=BESIDE_THE_WEIGHTS).directory
    except CheckpointError as error:
        raise TargetError(
            f"the target cannot be opened: {error.message}", hint=error.hint
        ) from None
