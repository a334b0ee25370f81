"""A report advises a conversion only where it would succeed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import eyas
from eyas.checkpoint import open_checkpoint
from eyas.convert import convert
from eyas.engines import EngineRef
from eyas.errors import ConversionError

Make = Callable[..., Path]
NESTED = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 4, 8]}}


def advice(draft: Path, engine: str, code: str) -> str:
    report = eyas.check(draft, engines=engine)
    return next(f.help for f in report.findings if f.code == code)


@pytest.mark.parametrize(
    ("config", "engine", "code"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "sglang@0.5.23", "C101"),  # the head has no room
        ({"architectures": ["LlamaEagle3DraftModel"]}, "vllm@0.33.0:v2", "C101"),
        (NESTED, "vllm@0.33.0:v2", "B601"),
    ],
)
def test_an_advised_conversion_is_one_that_succeeds(
    make_drafter: Make, config: dict[str, object], engine: str, code: str
) -> None:
    draft = make_drafter(**config)
    words = shlex.split(advice(draft, engine, code))
    assert words[:3] == ["eyas", "convert", str(draft)]
    assert words[4:] == ["--to", engine]
    convert(open_checkpoint(draft), words[3], EngineRef.parse(engine))
    assert eyas.check(words[3], engines=engine).exit_code() == 0


def test_no_conversion_is_advised_that_would_refuse(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter(architectures=["Nobodys"], norm_before_residual=True)
    assert advice(draft, "vllm@0.33.0:v2", "C101").startswith("eyas convert ")
    draft = make_drafter("stays", architectures=["Eagle3Speculator"], norm_before_residual=True)
    with pytest.raises(ConversionError):
        convert(open_checkpoint(draft), tmp_path / "out", EngineRef.parse("sglang@0.5.23"))
    assert advice(draft, "sglang@0.5.23", "C101") == (
        f"serve it on another engine; ask with: eyas check {draft} --engine vllm@0.33.0"
    )
