"""The dialect of vllm-project/speculators: a nested config and ``layers.0.*``.

The decoder layer's sizes are in ``transformer_layer_config``; layer ids are at the top level and
count boundaries as eyas does: id k is the state entering layer k (speculators 0.9.0,
models/eagle3/config.py). ``speculators_model_type`` names the algorithm: eagle3, peagle, dflash or
dspark; all other types are known by name alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, speculators_config
from eyas.dialects.eagle3 import LLAMA_CONFIG, Source, read_eagle3
from eyas.dialects.keys import Keys, or_absent
from eyas.dialects.names import roles_of
from eyas.dialects.parallel import MASK, in_parallel, with_mask_state
from eyas.dialects.speculators_config import BLOCK_IDS, IDS, LAYER, NON_CAUSAL, USUAL_BLOCK
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS, PARALLEL_KEYS
from eyas.errors import CheckpointError
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Recognised,
    assumed,
)

name = speculators_config.name
maps = speculators_config.maps
sorted_map = True  # the verifier's head is cut by t2d (speculators/model.py:173, 0.9.0)
write = speculators_config.write

_CLASS = "speculators' Eagle3SpeculatorConfig"
_RESIDUAL = f"{_CLASS} (its train command writes true, and vLLM takes true where it is absent)"

# What its drafters of a block are called, and whether their anchor drafts where no key says.
_BLOCKS = {"dflash": False, "dspark": True}

_KEYS = frozenset(
    {"architectures", "speculators_config", "speculators_model_type", "speculators_version"}
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """A nested layer config, or speculators' own keys with its class names."""
    config = checkpoint.config
    for key in (LAYER, "speculators_config", "speculators_model_type"):
        if key in config and (key != "speculators_model_type" or isinstance(config[key], str)):
            return f"{checkpoint.config_file} has {key}"
    return None


def keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading a drafter of its algorithm looks at."""
    if _algorithm(checkpoint) in _BLOCKS:
        top = _KEYS | block.BLOCK_KEYS | {BLOCK_IDS, NON_CAUSAL}
        return {"": top, LAYER: LAYER_KEYS | block.BLOCK_KEYS}
    return {"": _KEYS | DRAFTER_KEYS | PARALLEL_KEYS | {IDS}, LAYER: LAYER_KEYS}


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    algorithm = _algorithm(checkpoint)
    if algorithm in _BLOCKS:
        return block.roles(checkpoint)
    if algorithm == "peagle":
        return with_mask_state(checkpoint)
    return roles_of(checkpoint.tensors) if algorithm == "eagle3" else {}


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as speculators computes it."""
    algorithm = _algorithm(checkpoint)
    if algorithm not in ("eagle3", "peagle", *_BLOCKS):
        return Recognised(
            name=algorithm,
            why=f"{checkpoint.config_file} names the speculators type {algorithm}",
            lacks="eyas reads eagle3, peagle, dflash and dspark of speculators",
        )
    top = Keys(checkpoint.config, checkpoint.config_file)
    layer = top.section(LAYER)
    if not layer.values:
        raise CheckpointError(
            f"{top.place(LAYER)} is missing, so the sizes of {checkpoint.location} are unknown",
            hint="export it again with speculators",
        )
    if algorithm in _BLOCKS:
        return _read_block(checkpoint, top, layer, algorithm)
    drafter = _read_eagle3(checkpoint, top, layer)
    return in_parallel(checkpoint, drafter) if algorithm == "peagle" else drafter


def _algorithm(checkpoint: Checkpoint) -> str:
    """The algorithm that the config names, or else the tensors show."""
    top = Keys(checkpoint.config, checkpoint.config_file)
    named = top.text("speculators_model_type") or top.section("speculators_config").text(
        "algorithm"
    )
    # A test copy of a public drafter has the layer's model_type for its type.
    layer = top.section(LAYER).values.get("model_type")
    if named is not None and named.value != layer:
        return named.value
    if block.shows_block(checkpoint):
        return "dspark" if "markov_head.markov_w1.weight" in checkpoint.tensors else "dflash"
    return "peagle" if MASK in checkpoint.tensors else "eagle3"


def _read_eagle3(checkpoint: Checkpoint, top: Keys, layer: Keys) -> Eagle3Spec:
    return read_eagle3(
        Source(
            tensors=Tensors.of(checkpoint, roles_of(checkpoint.tensors)),
            layer=layer,
            flags=(top,),
            boundaries=_boundaries(top),
            target_name=_verifier(top),
            whose=_CLASS,
            norm_before_residual_whose=_RESIDUAL,
            rope_theta=10000.0,
            rope_theta_whose=LLAMA_CONFIG,
        )
    )


def _read_block(checkpoint: Checkpoint, top: Keys, layer: Keys, algorithm: str) -> DraftSpec:
    """Its layers slide causally unless the config says otherwise (models/dflash/config.py)."""
    whose = "speculators' DFlashSpeculatorConfig"

    def causal(sliding: Fact[frozenset[int]]) -> Fact[frozenset[int]]:
        non_causal = top.flag(NON_CAUSAL)
        if non_causal is None:
            return assumed(sliding.value, top.place(NON_CAUSAL), whose=whose)
        return non_causal.map(lambda on: frozenset() if on else sliding.value)

    return block.read_block(
        block.BlockSource(
            tensors=Tensors.of(checkpoint, block.roles(checkpoint)),
            layer=layer,
            own=(top,),
            boundaries=or_absent(top.integers(BLOCK_IDS), top.place(BLOCK_IDS)),
            causal=causal,
            anchored=_BLOCKS[algorithm],
            usual_block=USUAL_BLOCK,
            target_name=or_absent(
                _verifier(top), top.place("speculators_config.verifier.name_or_path")
            ),
            whose=whose,
        )
    )


def _verifier(top: Keys) -> Fact[str] | None:
    return top.section("speculators_config").section("verifier").text("name_or_path")


def _boundaries(top: Keys) -> Fact[Boundaries]:
    ids = top.integers(IDS)
    if ids is None or not ids.value:
        return assumed(
            DefaultBoundaries(), top.place(IDS), whose=f"speculators {speculators_config.VERSION}"
        )
    return Fact(value=ids.value, origin=ids.origin, key=ids.key)
