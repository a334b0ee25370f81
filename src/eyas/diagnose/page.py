"""A diagnosis as a page of HTML: one file that asks nothing of any other. Needs jinja2."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from eyas.checkpoint import whole_file
from eyas.checks.fold import fold
from eyas.checks.render.landing import parameter_rows
from eyas.decode.streamed_text import Decode
from eyas.diagnose.bars import groups
from eyas.diagnose.marked import marked
from eyas.diagnose.outcome import Diagnosis, estimate_text, price_text, shares_text
from eyas.diagnose.waterfall import waterfall
from eyas.errors import UsageError, one_line, reason_of
from eyas.spec import Landing

TEMPLATE = "page.html.j2"
TRIED = 20  # other readings that are listed at most, the best first


def writable(file: Path) -> Path:
    """`file`, if a page can be written there; UsageError before anything long is begun."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"a report is not written as {file.name!r}", hint="end it in .html")
    if not file.parent.is_dir():
        raise UsageError(f"the directory of {file} does not exist", hint=f"mkdir -p {file.parent}")
    if file.is_dir():
        raise UsageError(f"{file} is a directory", hint="name a file in it")
    if find_spec("jinja2") is None:
        raise UsageError("a report needs jinja2", hint="pip install 'eyas[report]'")
    return file


def page(found: Diagnosis, decode: Decode, landing: Landing | None = None) -> str:
    """`found` as HTML. `decode` is the target's tokenizer's; `landing` what the engine loads.

    Names of tensors and keys come from files that anybody may have written: all of it is escaped,
    and what steers a terminal or hides text is spelt out.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.finalize = _spelt
    environment.filters |= {"estimate": estimate_text, "price": price_text, "shares": shares_text}
    template = environment.from_string(files("eyas.diagnose").joinpath(TEMPLATE).read_text("utf-8"))
    return template.render(
        found=found,
        bars=groups(found),
        fall=waterfall(found),
        samples=marked(found.samples, decode),
        parameters=() if landing is None else parameter_rows(landing),
        lost=() if landing is None else _lost(landing),
        tried=sorted(found.tried, key=lambda tried: -tried.gain.value)[:TRIED],
    )


def write(file: Path, text: str) -> None:
    """Writes a page; `file` appears whole or not at all. Raises UsageError where it cannot."""
    try:
        with whole_file(file) as unfinished:
            unfinished.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"the report {file} cannot be written: {reason_of(error)}") from error


def _spelt(value: object) -> object:
    """What the template prints, without characters that are not seen; markup stays markup."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(map(one_line, value.split("\n")))
    return value


def _lost(landing: Landing) -> tuple[str, ...]:
    """The tensors that fill nothing though nobody says so, folded."""
    names = [tensor.name for tensor in landing.tensors]
    return fold([tensor.name for tensor in landing.lost], among=names)
