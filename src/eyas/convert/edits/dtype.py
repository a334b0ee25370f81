"""The weights of a drafter in another float type."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint.cast import widens
from eyas.checkpoint.header import TORCH_NAMES
from eyas.checkpoint.rows import Cast
from eyas.convert.material import Material, Part, is_weight
from eyas.errors import UsageError

SAFETENSORS_NAMES = {torch: name for name, torch in TORCH_NAMES.items()}


def with_dtype(material: Material, name: str) -> Material:
    """`material` with every weight in torch's type `name`; says whether numbers are rounded.

    Raises UsageError for a type that no drafter is stored in.
    """
    wanted = SAFETENSORS_NAMES.get(name)
    if wanted is None:
        raise UsageError(f"{name!r} is no type", hint=f"known: {', '.join(SAFETENSORS_NAMES)}")
    before = {
        role: part.rows.dtype
        for role, part in material.parts.items()
        if is_weight(role, part) and part.rows.dtype != wanted
    }
    if not before:
        return material
    parts: dict[str, Part | None] = {
        role: replace(material.parts[role], rows=Cast(material.parts[role].rows, wanted))
        for role in before
    }
    exact = all(widens(dtype, wanted) for dtype in before.values())
    how = "widened, exactly" if exact else "rounded to the nearest"
    kinds = ", ".join(sorted(set(before.values())))
    return material.changed(f"{len(before)} weights from {kinds} to {wanted}: {how}", parts=parts)
