"""A draft config as vLLM parses it: speculators or flat, and the class that results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint
from eyas.engines.config import LLAMA_DEFAULTS, ConfigView
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass, class_of
from eyas.engines.vllm.defaults import DEFAULTS
from eyas.engines.vllm.strict import require_sized, require_typed
from eyas.spec import Claim, Stage

# The keys that the parser takes from the top level, by speculators_model_type. A switch that is
# absent there takes the parser's default, whatever the nested config says.
_SWITCHES: Mapping[str, Mapping[str, bool]] = {
    "eagle3": {
        "norm_before_residual": True,
        "norm_before_fc": False,
        "fc_norm": False,
        "norm_output": False,
    },
    "peagle": {"norm_before_residual": False, "norm_before_fc": False},
}
_QUANT_FILE = "hf_quant_config.json"
_UNREAD_TYPES = ("dflash2", "dspark")
_TOP_IDS = "eagle_aux_hidden_state_layer_ids"
_NESTED_CLASSES = {"llama": DraftClass.LLAMA, "qwen3": DraftClass.QWEN3}
_LAYER_KEYS = frozenset({*LLAMA_DEFAULTS, "num_key_value_heads", "head_dim", "attention_bias"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftConfig:
    """The parsed config of a drafter and the class that it is built as.

    `nested` says that it is a speculators config, which no config class has filled up.
    """

    view: ConfigView
    built: DraftClass
    nested: bool


def is_speculators(checkpoint: Checkpoint) -> bool:
    """Whether vLLM takes the config for a speculators one."""
    values = checkpoint.config
    return values.get("model_type") is None and isinstance(values.get("speculators_config"), dict)


def draft_config(checkpoint: Checkpoint, version: str, method: str) -> DraftConfig:
    """The parsed config of an EAGLE drafter; refuses, or raises NotCovered for others."""
    speculators = is_speculators(checkpoint)
    parsed = (
        _speculators(checkpoint, version) if speculators else _flat(checkpoint, version, method)
    )
    sign = _quantised(checkpoint, parsed.view)
    if sign is not None:
        raise NotCovered(f"{sign} is there, and eyas does not read quantised drafters yet")
    return parsed


def _quantised(checkpoint: Checkpoint, view: ConfigView) -> str | None:
    """Where vLLM learns that a drafter is quantised, None where it takes it for a plain one.

    The top level counts for a speculators config too, and so does ModelOpt's own file (0.32.0,
    vllm/transformers_utils/config.py 890-902, model_arch_config_convertor.py 263-267).
    """
    key = "quantization_config"
    if checkpoint.config.get(key) is not None:
        return f"{checkpoint.config_file} :: {key}"
    for name in (key, "compression_config"):
        if view.get(name) is not None:
            return view.key(name)
    return _QUANT_FILE if (checkpoint.directory / _QUANT_FILE).is_file() else None


def _speculators(checkpoint: Checkpoint, version: str) -> DraftConfig:
    raw, file = checkpoint.config, checkpoint.config_file
    kind = raw.get("speculators_model_type")
    if kind in _UNREAD_TYPES:
        raise NotCovered(
            f"{file} :: speculators_model_type is {kind}, for which eyas has no contract"
        )
    layer = raw.get("transformer_layer_config")
    if kind == "dflash" and isinstance(layer, dict):
        return _speculators_dflash(raw, layer, file, version)
    if not isinstance(kind, str) or kind not in _SWITCHES:
        raise Refused(
            Stage.CONFIG,
            f"{file} :: speculators_model_type is {kind!r}, which the parser does not know",
            claims.SPECULATORS_TYPES,
        )
    model_type = layer.get("model_type", "llama") if isinstance(layer, dict) else None
    if (
        not isinstance(layer, dict)
        or not isinstance(model_type, str)
        or model_type not in _NESTED_CLASSES
    ):
        raise Refused(
            Stage.CONFIG,
            f"{file} :: transformer_layer_config.model_type is neither llama nor qwen3",
            claims.SPECULATORS,
        )
    if kind == "peagle" and "mask_token_id" not in raw:
        raise Refused(
            Stage.CONFIG,
            f"{file} :: mask_token_id is missing, and a peagle drafter needs it",
            claims.SPECULATORS_PEAGLE,
        )
    require_sized(layer, file)
    values, places = _merged(raw, layer, kind)
    view = ConfigView(
        values=values,
        whose=f"vllm {version}",
        stop=_stopper(claims.SPECULATORS_SIZES),
        file=file,
        places=places,
        defaults=_SWITCHES[kind],
    )
    return DraftConfig(view=view, built=_NESTED_CLASSES[model_type], nested=True)


def _speculators_dflash(
    raw: Mapping[str, object], layer: Mapping[str, object], file: str, version: str
) -> DraftConfig:
    """The config of a DFlash drafter: ids and mask token move, and no other key is looked at."""
    ids, mask = "aux_hidden_state_layer_ids", "mask_token_id"
    for name in (ids, mask):
        if name not in raw:
            raise Refused(Stage.CONFIG, f"{file} :: {name} is missing", claims.SPECULATORS_DFLASH)
    taken: dict[str, object] = {"draft_vocab_size": raw.get("draft_vocab_size")}
    if raw.get("target_hidden_size") is not None:
        taken["target_hidden_size"] = raw["target_hidden_size"]
    taken[_TOP_IDS] = raw[ids]
    taken["dflash_config"] = {mask: raw[mask]}
    nested = {k: v for k, v in layer.items() if k not in taken}
    view = ConfigView(
        values={**nested, **taken},
        whose=f"vllm {version}",
        stop=_stopper(claims.SPECULATORS_SIZES),
        file=file,
        places={_TOP_IDS: ids}
        | {name: f"transformer_layer_config.{name}" for name in _LAYER_KEYS | set(nested)},
        defaults={"norm_before_residual": False},
    )
    return DraftConfig(view=view, built=DraftClass.DFLASH, nested=True)


def _merged(
    raw: Mapping[str, object], layer: Mapping[str, object], kind: str
) -> tuple[dict[str, object], dict[str, str]]:
    """The values that the parser puts together, and the nested place of those that are nested."""
    dropped = {"draft_vocab_size", *_SWITCHES[kind]}
    taken = {name: raw[name] for name in dropped if name in raw}
    # A null switch is one that is off: only an absent key takes the default.
    taken.update({name: False for name in _SWITCHES[kind] if name in taken and not taken[name]})
    # A width or a list that the top level leaves empty does not replace the nested one.
    if raw.get("target_hidden_size") is not None:
        taken["target_hidden_size"] = raw["target_hidden_size"]
    if raw.get(_TOP_IDS):
        taken[_TOP_IDS] = raw[_TOP_IDS]
    places = {}
    if kind == "peagle":
        taken["pard_token"], places["pard_token"] = raw["mask_token_id"], "mask_token_id"
    nested = {k: v for k, v in layer.items() if k not in taken and k not in dropped}
    places |= {name: f"transformer_layer_config.{name}" for name in _LAYER_KEYS | set(nested)}
    return {**nested, **taken}, places


def _flat(checkpoint: Checkpoint, version: str, method: str) -> DraftConfig:
    raw, file = checkpoint.config, checkpoint.config_file
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise Refused(
            Stage.CONFIG,
            f"{file} has neither model_type nor a speculators_config",
            claims.MODEL_TYPE,
        )
    require_typed(raw, file)
    built = class_of(raw, file, method)

    def unknown(message: str) -> Exception:
        return NotCovered(f"{message}, and eyas does not know the defaults of {model_type!r}")

    known = model_type in DEFAULTS
    # Only an absent key takes the class's number of key heads: a null one takes all heads.
    present = [name for name in ("num_key_value_heads",) if name in raw]
    defaults = {k: v for k, v in DEFAULTS.get(model_type, {}).items() if k not in present}
    view = ConfigView(
        values=raw,
        whose=f"vllm {version}",
        stop=_stopper(claims.SIZES) if known else unknown,
        file=file,
        defaults=defaults,
    )
    return DraftConfig(view=view, built=built, nested=False)


def _stopper(claim: Claim) -> Callable[[str], Exception]:
    def stop(message: str) -> Exception:
        return Refused(Stage.CONSTRUCT, message, claim)

    return stop
