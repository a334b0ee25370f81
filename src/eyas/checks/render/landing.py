"""The table of a landing, tensor by tensor and parameter by parameter."""

from __future__ import annotations

import json

from eyas.checks.fold import merge_numbers, template
from eyas.checks.render.columns import columns
from eyas.checks.render.style import PLAIN, Style
from eyas.checks.report import SCHEMA_VERSION, Coverage
from eyas.spec import (
    Fate,
    FromTarget,
    FromTensor,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    Served,
    TensorLanding,
    Unfilled,
)


def render_human(served: Served, location: str, style: Style = PLAIN) -> str:
    """Where each tensor goes and what fills each parameter; a refusal first, if there is one."""
    lines = []
    label = f"{served.engine} {served.version}"
    if served.refusal is not None:
        refusal = served.refusal
        lines.append(style.paint(f"{label} raises at {refusal.stage}: {refusal.message}", "error"))
        lines.append(style.paint(f"  source: {refusal.claim.citation}", "dim"))
    if served.landing is not None:
        lines += _table(served.landing, f"{label} loads {location}", style)
    return style.fit("\n".join(lines) + "\n")


def _table(landing: Landing, title: str, style: Style) -> list[str]:
    coverage = Coverage.of(landing)
    unfilled = len(landing.unfilled)
    lines = [
        style.paint(
            f"{title}: {coverage.landed} of {coverage.total} tensors land,"
            f" {unfilled} of {len(landing.parameters)} parameters are left unfilled",
            "bold",
        ),
        "",
        style.paint("tensors", "bold"),
        columns(tensor_rows(landing)),
        "",
        style.paint("parameters", "bold"),
        columns(parameter_rows(landing)),
    ]
    if landing.log:
        lines += ["", style.paint("what the engine itself would print", "bold")]
        lines += [f"  {line}" for line in landing.log]
    elif landing.lost or landing.unfilled:
        lines += ["", "the engine itself would print nothing about it"]
    return lines


def tensor_rows(landing: Landing) -> list[list[str]]:
    """Fate, tensor, shape and destination; tensors that differ only in the layer share a row."""
    groups: dict[tuple[object, ...], list[TensorLanding]] = {}
    for tensor in landing.tensors:
        homes = tuple(map(template, tensor.parameters))
        key = (template(tensor.name), tensor.fate, tensor.shape, tensor.dtype, homes, tensor.cut)
        groups.setdefault(key, []).append(tensor)
    return [_tensor_row(group) for group in groups.values()]


def _tensor_row(group: list[TensorLanding]) -> list[str]:
    first = group[0]
    homes = merge_numbers(name for tensor in group for name in tensor.parameters)
    note = first.reason if first.fate is not Fate.LANDED else ""
    if first.cut:
        note = f"cut: {first.cut} of {first.elements} elements left out"
    where = ", ".join(homes) if homes else "-"
    name = merge_numbers(t.name for t in group)[0]
    return [first.fate.value, name, str(list(first.shape)), where, note]


def parameter_rows(landing: Landing) -> list[list[str]]:
    """State, parameter, shape and the segments that make it up, layers folded."""
    groups: dict[tuple[object, ...], list[ParameterLanding]] = {}
    for parameter in landing.parameters:
        contents = template(_contents(parameter))
        key = (template(parameter.name), _state(parameter), parameter.shape, contents)
        groups.setdefault(key, []).append(parameter)
    return [
        [
            _state(group[0]),
            merge_numbers(p.name for p in group)[0],
            str(list(group[0].shape)),
            merge_numbers(_contents(p) for p in group)[0],
        ]
        for group in groups.values()
    ]


def _state(parameter: ParameterLanding) -> str:
    if parameter.replaced is not None:
        return "replaced"
    return "unfilled" if parameter.unfilled else "filled"


def _contents(parameter: ParameterLanding) -> str:
    if parameter.replaced is not None:
        return f"the target's {parameter.replaced.what}"
    left = {s.source.initialisation for s in parameter.segments if isinstance(s.source, Unfilled)}
    if len(left) == 1 and not parameter.tensors:
        return str(left.pop())
    return " + ".join(_said(segment) for segment in parameter.segments)


def _said(segment: Segment) -> str:
    source = segment.source
    if isinstance(source, FromTensor):
        rest = f" + {segment.zeros} zeros" if segment.zeros else ""
        return source.tensor + (f" from row {segment.offset}" if segment.offset else "") + rest
    if isinstance(source, FromTarget):
        return f"the target's {source.what}"
    rows = segment.stop - segment.start
    if isinstance(source, Padding):
        return f"{rows} rows of padding"
    return f"{rows} rows of {source.initialisation}"


def render_json(served: Served, location: str) -> str:
    """The same as one JSON object."""
    refusal, landing = served.refusal, served.landing
    return (
        json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "path": location,
                "engine": served.engine,
                "version": served.version,
                "runner": served.runner,
                "refusal": None
                if refusal is None
                else {
                    "stage": refusal.stage,
                    "message": refusal.message,
                    "source": refusal.claim.citation,
                },
                "tensors": None if landing is None else [_tensor(t) for t in landing.tensors],
                "parameters": None
                if landing is None
                else [_parameter(p) for p in landing.parameters],
                "log": None if landing is None else list(landing.log),
            },
            indent=2,
        )
        + "\n"
    )


def _tensor(tensor: TensorLanding) -> dict[str, object]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "fate": tensor.fate,
        "parameters": list(tensor.parameters),
        "cut": tensor.cut,
        "reason": tensor.reason,
    }


def _parameter(parameter: ParameterLanding) -> dict[str, object]:
    return {
        "name": parameter.name,
        "shape": list(parameter.shape),
        "replaced": None if parameter.replaced is None else parameter.replaced.what,
        "segments": [
            {
                "start": s.start,
                "stop": s.stop,
                "role": s.role,
                "zeros": s.zeros,
                "offset": s.offset,
                **_source(s),
            }
            for s in parameter.segments
        ],
    }


def _source(segment: Segment) -> dict[str, object]:
    source = segment.source
    if isinstance(source, FromTensor):
        return {"from": "tensor", "tensor": source.tensor}
    if isinstance(source, FromTarget):
        return {"from": "target", "what": source.what}
    if isinstance(source, Unfilled):
        return {"from": "nothing", "initialisation": source.initialisation}
    return {"from": "padding"}
