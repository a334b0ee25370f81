"""Contract: what changed between the SGLang versions that eyas knows."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.engines.version import Version, version_of
from eyas.spec import Initialisation

OLDEST, NEWEST = "0.4.9", "0.5.23"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One SGLang version's behaviour, where versions differ.

    `layer` is the name of the Llama class's decoder layer with a place for its number.
    `drops_no_null` says whether a null quantization_config raises.
    `shares_head` says whether a null draft_vocab_size stands for the target's head. The fields
    that begin with `latent` are those of the MLA class.
    """

    version: str
    number: Version
    layer: str
    renames: tuple[tuple[str, str], ...]
    many_layers: bool
    counts_states: bool
    fc_norm: bool
    norm_output: bool
    norm_before_fc: bool
    switches_states: bool
    shares_head: bool
    graphs_reset_ids: bool
    first_id_decides: bool
    gpt_oss_last_layer: bool
    rope_parameters: bool
    strict_types: bool
    drops_no_null: bool
    scaling_defaults: bool
    proportional_rope: bool
    sections_are_default: bool
    guesses_model_type: bool
    sorts_two_files: bool
    sorts_files: bool
    zero_pads: bool
    bias: Initialisation
    width_check: str
    draft_window: bool
    refuses_longer: bool
    skips_unknown_parts: bool
    latent: bool
    latent_fc_norm: bool
    latent_splits_fc: bool


def contract_of(version: Version, typed: str) -> Contract:
    """The contract of `version`, which lies in the known range."""

    def since(text: str) -> bool:
        return version >= version_of(text)

    named_layers = since("0.5.12")
    return Contract(
        version=typed,
        number=version,
        layer="model.layers.{}" if named_layers else "model.midlayer",
        renames=_LEGACY_NAMES if named_layers else (),
        many_layers=named_layers,
        counts_states=named_layers,
        fc_norm=named_layers,
        norm_output=named_layers,
        norm_before_fc=since("0.5.17"),
        switches_states=since("0.5.8"),
        shares_head=since("0.5.2"),
        graphs_reset_ids=not since("0.5.11"),
        first_id_decides=since("0.5.13"),
        gpt_oss_last_layer=since("0.5.17"),
        # 0.5.9 pins transformers 4.57.1, 0.5.10 pins 5.3.0.
        rope_parameters=since("0.5.10"),
        # 0.5.10.post1 still pins transformers 5.3.0, 0.5.11 pins 5.6.0.
        strict_types=since("0.5.11"),
        drops_no_null=not since("0.5.10"),
        scaling_defaults=since("0.5.10"),
        proportional_rope=since("0.5.11"),
        sections_are_default=since("0.5.2"),
        guesses_model_type=not since("0.5.10"),
        sorts_two_files=since("0.5.6.post1"),
        sorts_files=since("0.5.13"),
        zero_pads=since("0.5.3rc2"),
        bias=Initialisation.ZEROS if since("0.5.9") else Initialisation.MEMORY,
        width_check=_width_check(version),
        draft_window=named_layers,
        refuses_longer=since("0.5.1"),
        skips_unknown_parts=since("0.4.9.post2"),
        latent=named_layers,
        latent_fc_norm=since("0.5.13"),
        latent_splits_fc=since("0.5.15"),
    )


_LEGACY_NAMES = (
    ("midlayer", "layers.0"),
    ("aux_norm_low", "fc_norm.0"),
    ("aux_norm_mid", "fc_norm.1"),
    ("aux_norm_high", "fc_norm.2"),
)

# The line of llama_eagle3.py that skips fc when the widths are equal, by first version.
_WIDTH_CHECKS = (
    ("0.5.23", "238"),
    ("0.5.22", "237"),
    ("0.5.17", "229"),
    ("0.5.14", "214"),
    ("0.5.13", "213"),
    ("0.5.12", "218"),
    ("0.5.10", "176"),
    ("0.5.4.post3", "162"),
    ("0.5.2", "161"),
    ("0.4.9", "148"),
)


def _width_check(version: Version) -> str:
    return next(line for first, line in _WIDTH_CHECKS if version >= version_of(first))
