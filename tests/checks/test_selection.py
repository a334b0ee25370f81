"""Which rules run, and that what was left out is never a pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.checks import RULES, Outcome, Selection, check
from eyas.engines import EngineRef, Launch
from eyas.errors import UsageError

Make = Callable[..., Path]


def codes(selection: Selection) -> list[str]:
    return [rule.code for rule in selection.rules]


@pytest.mark.parametrize(
    ("select", "ignore", "runs", "not_runs"),
    [
        ((), (), {"C101", "L202", "W901"}, set()),
        (("L2",), (), {"L201", "L202"}, {"C101", "F301"}),
        (("l202,T",), (), {"L202", "T701", "T703"}, {"L201"}),
        (("layer-dropped",), (), {"L202"}, {"L201"}),
        ((), ("L", "C101"), {"C102", "F301"}, {"L202", "C101"}),
        (("L2",), ("L202",), {"L201"}, {"L202", "C101"}),
        (("L2", "T7"), ("L2",), {"T701"}, {"L201"}),
    ],
)
def test_codes_prefixes_and_names(
    select: tuple[str, ...], ignore: tuple[str, ...], runs: set[str], not_runs: set[str]
) -> None:
    selection = Selection.parse(select, ignore)
    assert runs <= set(codes(selection))
    assert not not_runs & set(codes(selection))
    both = {*selection.rules, *selection.left_out}
    assert len(selection.rules) + len(selection.left_out) == len(both) == len(RULES)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("L22", "did you mean L2"),
        ("layer-droped", "did you mean layer-dropped"),
        ("Q9", "eyas check --list-rules"),
        ("*", "eyas check --list-rules"),
    ],
)
def test_an_unknown_one_is_an_error_with_a_suggestion(text: str, hint: str) -> None:
    for chosen in ({"select": [text]}, {"ignore": ["L2", text]}):
        with pytest.raises(UsageError, match=r"is no code, prefix or name of a rule") as caught:
            Selection.parse(**chosen)
        assert text in caught.value.message
        assert hint in (caught.value.hint or "")


def test_nothing_left_to_run_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing would be checked"):
        Selection.parse(["L202"], ["L"])


def test_what_is_ignored_is_not_found_and_named(make_drafter: Make) -> None:
    checkpoint = open_checkpoint(make_drafter(layer="layers.0."))
    engines = [EngineRef.parse("sglang@0.5.10.post1")]
    selection = Selection.parse(ignore=["L202"])
    found = check(checkpoint, engines, launch=Launch(), selection=selection)
    assert "L202" not in {f.code for f in found.findings}
    assert found.left_out == ("L202 layer-dropped",)


def test_an_engine_that_raises_is_no_pass_where_that_rule_is_left_out(make_drafter: Make) -> None:
    checkpoint = open_checkpoint(make_drafter(model_type=None))
    engines = [EngineRef.parse("sglang@0.5.23")]
    whole = check(checkpoint, engines, launch=Launch())
    assert [f.code for f in whole.findings] == ["C101"]
    some = check(checkpoint, engines, launch=Launch(), selection=Selection.parse(["L"]))
    assert [e.outcome for e in some.engines] == [Outcome.SKIP]
    assert "C101 engine-refuses is left out" in (some.engines[0].reason or "")
    assert some.exit_code() == 2
