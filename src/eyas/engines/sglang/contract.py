"""Contract: what changed between the SGLang versions that eyas knows."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.engines.version import Version, version_of
from eyas.spec import Initialisation

OLDEST, NEWEST = "0.5.8", "0.5.23"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One SGLang version's behaviour, where versions differ.

    `layer` is the name of the decoder layer with a place for its number. `norm_before_fc` is None
    for the one version where nobody has looked.
    """

    version: str
    layer: str
    renames: tuple[tuple[str, str], ...]
    many_layers: bool
    counts_states: bool
    fc_norm: bool
    norm_output: bool
    norm_before_fc: bool | None
    graphs_reset_ids: bool
    first_id_decides: bool
    gpt_oss_last_layer: bool
    rope_parameters: bool
    guesses_model_type: bool
    out_bias: Initialisation
    width_check: str


def contract_of(version: Version, typed: str) -> Contract:
    """The contract of `version`, which lies in the known range."""

    def since(text: str) -> bool:
        return version >= version_of(text)

    named_layers = since("0.5.12")
    return Contract(
        version=typed,
        layer="model.layers.{}" if named_layers else "model.midlayer",
        renames=_LEGACY_NAMES if named_layers else (),
        many_layers=named_layers,
        counts_states=named_layers,
        fc_norm=named_layers,
        norm_output=named_layers,
        norm_before_fc=_norm_before_fc(version),
        graphs_reset_ids=not since("0.5.11"),
        first_id_decides=since("0.5.13"),
        gpt_oss_last_layer=since("0.5.18"),
        # 0.5.8 pins transformers 4.57.1, 0.5.10.post1 has 5.3.0; 0.5.9 was not looked at.
        rope_parameters=since("0.5.10"),
        guesses_model_type=not since("0.5.10"),
        # Zeroed in 0.5.11 and later, uninitialised in 0.5.8; between them nobody has looked.
        out_bias=Initialisation.ZEROS if since("0.5.11") else Initialisation.MEMORY,
        width_check=_width_check(version),
    )


_LEGACY_NAMES = (
    ("midlayer", "layers.0"),
    ("aux_norm_low", "fc_norm.0"),
    ("aux_norm_mid", "fc_norm.1"),
    ("aux_norm_high", "fc_norm.2"),
)


def _norm_before_fc(version: Version) -> bool | None:
    if version >= version_of("0.5.18"):
        return True
    return None if version >= version_of("0.5.17") else False


# The line of llama_eagle3.py that skips fc when the widths are equal, by first version.
_WIDTH_CHECKS = (
    ("0.5.23", "238"),
    ("0.5.22", "237"),
    ("0.5.18", "229"),
    ("0.5.13", "213"),
    ("0.5.12", "218"),
    ("0.5.10", "176"),
    ("0.5.8", "162"),
)


def _width_check(version: Version) -> str:
    return next(line for first, line in _WIDTH_CHECKS if version >= version_of(first))
