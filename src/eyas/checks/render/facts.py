"""What a drafter is: its facts with their sources, and its tensors with their roles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass

from eyas.checkpoint import Format
from eyas.checks.fold import merge_numbers, template
from eyas.checks.render.columns import columns
from eyas.checks.render.style import PLAIN, Style
from eyas.checks.report import SCHEMA_VERSION
from eyas.checks.rules.fact import spoken
from eyas.checks.view import Trained
from eyas.errors import one_line
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fact, Origin, Recognised, Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """One fact, flattened: its path in the spec, its value, and where it was learned."""

    name: str
    value: object
    origin: str
    key: str
    whose: str | None


def fact_rows(part: object, prefix: str = "") -> Iterator[FactRow]:
    """Every fact of a spec, in the order of its fields."""
    if not is_dataclass(part):
        return
    for field in fields(part):
        value = getattr(part, field.name)
        name = prefix + field.name
        if isinstance(value, Fact):
            yield FactRow(
                name=name,
                value=value.value,
                origin=value.origin.value,
                key=value.key,
                whose=value.whose,
            )
        else:
            yield from fact_rows(value, name + ".")


def render_human(
    trained: Trained, why: str, style: Style = PLAIN, *, unread: Sequence[str] = ()
) -> str:
    """The drafter, why it is taken for what it is, its facts and its tensors.

    `unread` are the keys that could change its arithmetic and that eyas does not read.
    """
    checkpoint, spec = trained.checkpoint, trained.spec
    head = f"{checkpoint.location}: a drafter in the {trained.dialect} dialect"
    lines = [style.paint(head, "bold"), f"  because {one_line(why)}"]
    if checkpoint.revision:
        lines.append(f"  revision {checkpoint.revision}")
    if checkpoint.format is Format.PICKLE:
        lines.append("  its weights are a pickle, read as weights only: nothing of it was run")
    if isinstance(spec, Recognised):
        lines.append(f"  recognised, and not judged: {spec.unjudged}")
    elif not isinstance(spec, Eagle3Spec):
        lines.append(f"  not judged: {spec.unjudged}")
    rows = [
        [row.name, spoken(row.value), row.origin, row.key + _default_of(row)]
        for row in fact_rows(spec)
    ]
    if rows:
        lines += ["", style.paint("facts", "bold"), columns(rows)]
    if unread:
        lines += ["", style.paint("keys that eyas does not read", "bold")]
        lines += [f"  {key}" for key in unread]
    lines += ["", style.paint(f"tensors ({len(checkpoint.tensors)})", "bold")]
    lines.append(columns(tensor_rows(trained)))
    return style.fit("\n".join(lines) + "\n")


def tensor_rows(trained: Trained) -> list[list[str]]:
    """Tensors with shape, type and role, those of equal layers in one row."""
    roles = trained.roles
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for header in trained.checkpoint.tensors.values():
        role = roles.get(header.name, "no known role")
        shape = str(list(header.shape))
        key = (template(header.name), shape, header.dtype, template(role))
        groups.setdefault(key, []).append(header.name)
    return [
        [
            merge_numbers(names)[0],
            shape,
            dtype,
            merge_numbers(roles.get(name, "no known role") for name in names)[0],
        ]
        for (_, shape, dtype, _), names in groups.items()
    ]


def render_json(trained: Trained, why: str, *, unread: Sequence[str] = ()) -> str:
    """The same as one JSON object."""
    checkpoint = trained.checkpoint
    return (
        json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "path": checkpoint.location,
                "revision": checkpoint.revision,
                "files": list(checkpoint.files),
                "format": checkpoint.format.value,
                "dialect": trained.dialect,
                "why": why,
                "known_by_name_alone": isinstance(trained.spec, Recognised),
                "not_judged": None
                if isinstance(trained.spec, Eagle3Spec)
                else trained.spec.unjudged,
                "facts": [
                    {**asdict(row), "value": _plain(row.value)} for row in fact_rows(trained.spec)
                ],
                "unread": list(unread),
                "tensors": [
                    {
                        "name": header.name,
                        "shape": list(header.shape),
                        "dtype": header.dtype,
                        "file": header.file,
                        "role": trained.roles.get(header.name),
                    }
                    for header in checkpoint.tensors.values()
                ],
            },
            indent=2,
        )
        + "\n"
    )


def _default_of(row: FactRow) -> str:
    if row.whose is not None and row.origin == Origin.DECLARED:
        return f" (as meant by {row.whose})"
    if row.whose is not None:
        return f" (absent; default of {row.whose})"
    return " (absent)" if row.origin == Origin.ABSENT else ""


def _plain(value: object) -> object:
    """`value` as JSON holds it."""
    if isinstance(value, DefaultBoundaries):
        return "default"
    if isinstance(value, Rope):
        return {"theta": value.theta, "kind": value.kind, "scaling": dict(value.scaling)}
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
