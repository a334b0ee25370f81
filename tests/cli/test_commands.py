"""Each command's output, stream and exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eyas.checkpoint import TensorBytes
from eyas.checks import RULES, Severity
from eyas.checks.render import Format
from eyas.cli import main
from eyas.cli.check import ReportFormat, Threshold
from eyas.engines import EngineRef

Make = Callable[..., Path]
OLD, NEW, VLLM = "sglang@0.5.10.post1", "sglang@0.5.23", "vllm@0.33.0"
Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_inspect_names_the_key_of_every_fact(make_drafter: Make, capsys: Captured) -> None:
    code, out, _ = run(capsys, "inspect", make_drafter(rope_theta=5e5))
    assert code == 0
    assert "specforge dialect" in out
    assert "theta 500000" in out
    assert "config.json :: rope_theta" in out
    assert "assumed" in out
    assert "no known role" not in out


def test_inspect_as_json(make_drafter: Make, capsys: Captured) -> None:
    code, out, _ = run(capsys, "inspect", make_drafter(), "--format", "json")
    document = json.loads(out)
    facts = {fact["name"]: fact for fact in document["facts"]}
    assert code == 0
    assert facts["hidden_size"]["value"] == 8
    assert facts["rope"]["value"] == {"theta": 10000.0, "kind": "default", "scaling": {}}
    assert facts["conditioning.boundaries"]["origin"] == "assumed"
    assert {tensor["role"] for tensor in document["tensors"]} >= {"fc.weight", "d2t"}


def test_landing_shows_both_sides(make_drafter: Make, capsys: Captured) -> None:
    draft = make_drafter(layer="layers.0.")
    code, out, _ = run(capsys, "landing", draft, "--engine", OLD)
    assert code == 0
    assert "4 of 14 tensors land, 7 of 11 parameters are left unfilled" in out
    assert "lost" in out
    assert "model.midlayer.self_attn.qkv_proj.weight" in out
    assert "uninitialised memory" in out
    assert "the engine itself would print nothing about it" in out


def test_landing_as_json_adds_up(make_drafter: Make, capsys: Captured) -> None:
    _, out, _ = run(capsys, "landing", make_drafter(), "--engine", NEW, "--format", "json")
    document = json.loads(out)
    assert {tensor["fate"] for tensor in document["tensors"]} == {"landed", "consumed", "ignored"}
    qkv = next(p for p in document["parameters"] if p["name"].endswith("qkv_proj.weight"))
    assert [segment["from"] for segment in qkv["segments"]] == ["tensor"] * 3


def test_landing_shows_zeros_and_rows(make_drafter: Make, capsys: Captured) -> None:
    draft = make_drafter(intermediate_size=16)  # the tensors have 12 rows
    _, out, _ = run(capsys, "landing", draft, "--engine", NEW)
    assert "midlayer.mlp.down_proj.weight + 32 zeros" in out
    _, out, _ = run(capsys, "landing", draft, "--engine", NEW, "--format", "json")
    down = next(p for p in json.loads(out)["parameters"] if p["name"].endswith("down_proj.weight"))
    assert [(s["zeros"], s["offset"]) for s in down["segments"]] == [(32, 0)]


def test_landing_of_an_unknown_version_could_not_be_judged(
    make_drafter: Make, capsys: Captured
) -> None:
    code, out, err = run(capsys, "landing", make_drafter(), "--engine", "sglang@9.9.9")
    assert (code, out) == (2, "")
    assert "not covered" in err


@pytest.mark.parametrize(
    ("layer", "engines", "extra", "expected"),
    [
        ("midlayer.", f"{OLD},{NEW},{VLLM}", (), 0),
        ("layers.0.", f"{NEW},{VLLM}", (), 0),
        ("layers.0.", f"{OLD},{NEW}", (), 1),
        ("midlayer.", NEW, ("--strict",), 1),
        ("midlayer.", "sglang@9.9.9", (), 2),
        ("midlayer.", "tensorrt@1.0", (), 2),
        ("midlayer.", NEW, ("--launch", "speculative_algoritm=EAGLE"), 2),
        ("midlayer.", NEW, ("--target", "/does/not/exist"), 2),
    ],
)
def test_exit_codes_of_check(
    make_drafter: Make,
    capsys: Captured,
    layer: str,
    engines: str,
    extra: tuple[str, ...],
    expected: int,
) -> None:
    draft = make_drafter(layer=layer)
    code, out, err = run(capsys, "check", draft, "--engine", engines, *extra)
    assert code == expected
    assert bool(out) == ("error: " not in err)


def test_stdout_carries_the_report_alone(make_drafter: Make, capsys: Captured) -> None:
    draft = make_drafter(layer="layers.0.")
    _, out, err = run(capsys, "check", draft, "--engine", OLD)
    assert out.startswith("fail: sglang 0.5.10.post1\n")
    assert err == "next: eyas explain L202\n"


def test_suggested_commands_can_be_pasted(
    make_drafter: Make, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_drafter("of vllm", layer="layers.0.", norm_before_residual=True)
    _, out, _ = run(capsys, "check", other, "--engine", OLD)
    assert f"eyas check '{other}' --engine {NEW},{VLLM}" in out
    assert "eyas convert" not in out  # it would refuse: no SGLang computes this residual
    draft = make_drafter("a draft", layer="layers.0.")
    _, out, err = run(capsys, "inspect", draft)
    assert err == f"next: eyas check '{draft}' --engine {NEW},{VLLM}\n"
    _, out, _ = run(capsys, "check", draft, "--engine", OLD)
    assert f"eyas convert '{draft}' '{draft}-sglang' --to {OLD}" in out
    target = draft.parent / "a model"
    target.mkdir()
    (target / "config.json").write_text('{"hidden_size": 8, "num_hidden_layers": 8}')
    _, out, _ = run(capsys, "check", draft, "--engine", OLD, "--target", target)
    assert f"--to {OLD} --target '{target}'" in out
    monkeypatch.chdir(draft)
    _, out, _ = run(capsys, "check", ".", "--engine", OLD)
    assert f"eyas convert . '{draft}-sglang' --to {OLD}" in out


def test_engines_may_be_given_apart(make_drafter: Make, capsys: Captured) -> None:
    _, out, _ = run(
        capsys, "check", make_drafter(), "--engine", NEW, "--engine", VLLM, "--format", "json"
    )
    assert [engine["engine"] for engine in json.loads(out)["engines"]] == ["sglang", "vllm"]


def test_without_an_engine_the_newest_of_each_judges(make_drafter: Make, capsys: Captured) -> None:
    code, out, err = run(capsys, "check", make_drafter(), "--format", "json")
    judged = [f"{e['engine']}@{e['version']}" for e in json.loads(out)["engines"]]
    assert judged == [str(ref) for ref in EngineRef.parse_list(f"{NEW},{VLLM}")]
    assert "no --engine was named" in err
    assert all(name.replace("@", " ") in err for name in judged)
    assert code == 0
    assert "no --engine" not in run(capsys, "check", make_drafter("b"), "--engine", NEW)[2]


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ((), 1),
        (("--ignore", "L202"), 0),
        (("--select", "T"), 0),
        (("--select", "L2", "--fail-on", "warning"), 1),
        (("--select", "L22"), 2),
    ],
)
def test_rules_are_selected(
    make_drafter: Make, capsys: Captured, extra: tuple[str, ...], expected: int
) -> None:
    draft = make_drafter(layer="layers.0.")
    code, out, err = run(capsys, "check", draft, "--engine", OLD, *extra)
    assert code == expected
    if expected == 2:
        assert err.startswith("error: `L22` is no code, prefix or name of a rule; did you mean L2")
    elif extra:
        assert "left out by --select or --ignore: " in out


def test_a_note_fails_where_it_is_asked_to(make_drafter: Make, capsys: Captured) -> None:
    own = {"embed_tokens.weight": TensorBytes(dtype="BF16", shape=(32, 8), data=b"\0" * 512)}
    draft = make_drafter(tensors=own)
    assert run(capsys, "check", draft, "--engine", NEW)[0] == 0
    assert run(capsys, "check", draft, "--engine", NEW, "--fail-on", "info")[0] == 1


def test_strict_counts_what_was_not_asked_for_too(make_drafter: Make, capsys: Captured) -> None:
    draft = make_drafter()
    asked = ("check", draft, "--engine", NEW, "--strict")
    assert run(capsys, *asked)[0] == 1
    assert run(capsys, *asked, "--ignore", "T,W")[0] == 0


def test_values_reads_the_weights(make_drafter: Make, capsys: Captured) -> None:
    zeros = {"fc.weight": TensorBytes(dtype="BF16", shape=(8, 24), data=None)}
    draft = make_drafter(tensors=zeros)
    code, out, _ = run(capsys, "check", draft, "--engine", NEW)
    assert code == 0
    assert "(no --values): W901 all-zero" in out
    code, out, _ = run(capsys, "check", draft, "--engine", NEW, "--values", "--select", "W901")
    assert code == 1
    assert "error[W901] all-zero: fc.weight holds nothing but zeros" in out


def test_rules_are_listed(capsys: Captured) -> None:
    code, out, _ = run(capsys, "check", "--list-rules")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()] == [
        [rule.code, rule.name, rule.severity.value] for rule in RULES
    ]
    _, out, _ = run(capsys, "check", "--list-rules", "--select", "L2", "--format", "json")
    listed = json.loads(out)["rules"]
    assert [rule["code"] for rule in listed] == [r.code for r in RULES if r.code[:2] == "L2"]
    assert all(rule["explanation"].startswith(rule["summary"]) for rule in listed)
    code, out, err = run(capsys, "check", "--list-rules", "--format", "sarif")
    assert (code, err.count("\n")) == (2, 1)


def test_the_options_offer_what_there_is() -> None:
    assert {form.value for form in ReportFormat} == {form.value for form in Format}
    assert {least.value for least in Threshold} == {severity.value for severity in Severity}


@pytest.mark.parametrize("form", [form.value for form in Format])
def test_every_format_names_the_checks_that_did_not_run(
    make_drafter: Make, capsys: Captured, form: str
) -> None:
    code, out, _ = run(
        capsys, "check", make_drafter(), "--engine", f"{NEW},sglang@0.9.0", "--format", form
    )
    assert code == 0
    for rule in ("T701 width-mismatch", "T703 boundary-outside", "W904 at-initialisation"):
        assert rule in out
    assert "0.9.0 is outside" in out


def test_explain_one_and_all(capsys: Captured) -> None:
    code, out, _ = run(capsys, "explain", "L202")
    assert code == 0
    assert "How to fix it" in out
    code, out, _ = run(capsys, "explain")
    assert code == 0
    assert "F301" in out


def test_convert_dry_run_and_real(make_drafter: Make, tmp_path: Path, capsys: Captured) -> None:
    draft, out_dir = make_drafter(layer="layers.0."), tmp_path / "out"
    code, out, _ = run(capsys, "convert", draft, out_dir, "--to", OLD, "--dry-run")
    assert code == 0
    assert "10 of them renamed" in out
    assert not out_dir.exists()
    code, out, err = run(capsys, "convert", draft, out_dir, "--to", OLD)
    assert code == 0
    assert "10 of 15 tensors renamed" in out
    assert f"--speculative-draft-model-path {out_dir} " in err
    assert run(capsys, "check", out_dir, "--engine", OLD)[0] == 0


def test_convert_refuses(make_drafter: Make, tmp_path: Path, capsys: Captured) -> None:
    draft = make_drafter(norm_before_residual=True)
    code, out, err = run(capsys, "convert", draft, tmp_path / "out", "--to", NEW)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
