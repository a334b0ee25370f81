"""Reading P-EAGLE: what an EAGLE-3 drafter needs to draft all its tokens in one pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import has_eagle3_tensors
from eyas.dialects.keys import Keys, architectures, first, or_absent
from eyas.dialects.names import roles_of
from eyas.errors import ConversionError
from eyas.spec import Eagle3Spec, PEagleSpec, inferred

MASK = "mask_hidden"
# Where the id of the mask token is: speculators and Automodel, vLLM's own key, ModelOpt's.
_MASK_IDS = ("mask_token_id", "pard_token", "ptd_token_id")


def drafts_in_parallel(checkpoint: Checkpoint) -> str | None:
    """Why a drafter is P-EAGLE: it says so, or has a mask state beside the mask token.

    A mask state alone proves nothing: vLLM 0.32.0 leaves it out of an EAGLE-3 drafter
    (model_executor/models/llama_eagle3.py).
    """
    config = checkpoint.config
    for architecture in architectures(config):
        if architecture.lower().startswith("peagle"):
            return f"{checkpoint.config_file} names {architecture}"
    if config.get("parallel_drafting") is True and has_eagle3_tensors(checkpoint):
        return f"{checkpoint.config_file} has parallel_drafting, over EAGLE-3's tensors"
    mask = next((key for key in _MASK_IDS if config.get(key) is not None), None)
    if mask is not None and MASK in checkpoint.tensors and has_eagle3_tensors(checkpoint):
        return f"it has {MASK}, and {checkpoint.config_file} has {mask}"
    return None


def in_parallel(checkpoint: Checkpoint, drafter: Eagle3Spec) -> PEagleSpec:
    """`drafter` with what P-EAGLE adds to it."""
    top = Keys(checkpoint.config, checkpoint.config_file)
    return PEagleSpec(
        drafter=drafter,
        mask_token_id=or_absent(
            first(top.integer(key) for key in _MASK_IDS), top.place(_MASK_IDS[0])
        ),
        mask_hidden=inferred(MASK in checkpoint.tensors, checkpoint.place(MASK)),
        depths=or_absent(top.size("num_depths"), top.place("num_depths")),
    )


def with_mask_state(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role, the mask state included."""
    own = {MASK: MASK} if MASK in checkpoint.tensors else {}
    return {**roles_of(checkpoint.tensors), **own}


def require_mask_state(spec: PEagleSpec, roles_present: Collection[str], code: str) -> None:
    """Raises ConversionError where the mask state is missing: `code` has one in every drafter."""
    if not spec.mask_hidden.value or MASK not in roles_present:
        raise ConversionError(
            f"the drafter has no {MASK}, which {code} has in every P-EAGLE drafter",
            hint="export the drafter again with all its tensors",
        )


def parallel_keys(spec: PEagleSpec) -> dict[str, Any]:
    """The mask token and the number of depths, where they are known."""
    stated = {_MASK_IDS[0]: spec.mask_token_id.value, "num_depths": spec.depths.value}
    return {key: value for key, value in stated.items() if value is not None}
