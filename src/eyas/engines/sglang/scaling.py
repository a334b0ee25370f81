"""What SGLang and its transformers need to find in a RoPE scaling, version by version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import Refused
from eyas.spec import Claim, Stage

_LENGTH = "original_max_position_embeddings"
# By kind, what transformers' parser asks for.
_ASKED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
}
# By kind, what SGLang then looks up without a default, up to 0.5.9.
_LOOKED_UP = {
    "llama3": (_LENGTH,),
    "yarn": (_LENGTH,),
    "deepseek_yarn": ("factor", _LENGTH),
    "longrope": (_LENGTH,),
}
_KNOWN = {"default", "deepseek_yarn", *_ASKED}


def require_parsed(config: ConfigView, contract: Contract) -> None:
    """Refuse what transformers does: a scaling without a kind, or without the kind's numbers."""
    name, table = _table(config, contract)
    if table is None or (table == [] and contract.rope_parameters and name == "rope_scaling"):
        return
    key = config.key(name)
    if not isinstance(table, Mapping):
        raise Refused(Stage.CONFIG, f"{key} is {table!r} where a table is needed", _parse(contract))
    kind = _kind(table)
    if kind is None:
        if contract.rope_parameters:
            return
        raise Refused(Stage.CONFIG, f"{key} names no kind of scaling", _parse(contract))
    needed = _ASKED.get(kind, ())
    if kind == "llama3" and not contract.rope_parameters:
        needed = (*needed, _LENGTH)
    missing = _missing(needed, table)
    if missing:
        raise Refused(
            Stage.CONFIG, f"{key} is of the kind {kind} and has no {missing}", _parse(contract)
        )


def require_known(config: ConfigView, contract: Contract) -> None:
    """Refuse what SGLang does: a kind that it does not know, or a number that it looks up."""
    name, table = _table(config, contract)
    table = table if isinstance(table, Mapping) else {}
    kind, key = _kind(table) or "default", config.key(name)
    if contract.sections_are_default and "mrope_section" in table:
        kind = "default"
    if kind not in _KNOWN and not (kind == "proportional" and contract.proportional_rope):
        raise Refused(
            Stage.CONSTRUCT,
            f"{key} is of the kind {kind}, which this version does not know",
            claims.scaling(contract),
        )
    theta = table.get("rope_theta", config.get("rope_theta"))
    if theta is None and (config.has("rope_theta") or "rope_theta" in table):
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('rope_theta')} is null, and is computed with",
            claims.scaling(contract),
        )
    if contract.scaling_defaults:
        return
    given = {**table, _LENGTH: table.get(_LENGTH) or config.get(_LENGTH) or None}
    missing = _missing(_LOOKED_UP.get(kind, ()), given)
    if missing:
        raise Refused(
            Stage.CONSTRUCT,
            f"{key} is of the kind {kind} and has no {missing}",
            claims.scaling(contract),
        )


def _table(config: ConfigView, contract: Contract) -> tuple[str, object]:
    name = "rope_scaling"
    if contract.rope_parameters and not config.get(name):
        name = "rope_parameters"
    return name, config.get(name)


def _kind(table: Mapping[str, object]) -> str | None:
    kind = table.get("rope_type", table.get("type"))
    return None if kind is None else str(kind)


def _missing(needed: Iterable[str], table: Mapping[str, object]) -> str | None:
    return next((name for name in needed if table.get(name) is None), None)


def _parse(contract: Contract) -> Claim:
    return claims.SCALING_TYPED if contract.rope_parameters else claims.SCALING_PARSED
