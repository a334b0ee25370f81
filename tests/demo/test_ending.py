from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eyas.checks.render.style import PLAIN
from eyas.decode.acceptance import Acceptance
from eyas.decode.answers import Answers, TokenisedPrompt
from eyas.decode.generation import Generation
from eyas.demo import ending


def answers(*accepted: int) -> Answers:
    generation = Generation(
        tokens=(1, 2, 3), seconds=1.0, gaps=None, acceptance=Acceptance.of(2, accepted)
    )
    prompt = TokenisedPrompt(category="chat", ids=(1,))
    return Answers(prompts=(prompt,), generations=(generation,))


MEASURED = {
    "as trained": (answers(2, 1, 0, 1),),
    "its layer lost": (answers(0, 0, 0, 0), answers(0, 1, 0, 0)),
}


def test_a_table_and_bars_of_what_was_measured() -> None:
    lines = ending.text(MEASURED, PLAIN).splitlines()
    assert lines[0] == ending.TITLE
    assert lines[1].split() == ["tau", "draft", "1", "draft", "2"]
    assert lines[2].split() == ["as", "trained", "2.00", "75", "%", "25", "%"]
    assert lines[3].split()[-9:] == ["1.00", "to", "1.25", "0", "to", "25", "%", "0", "%"]
    assert sum("█" in line for line in lines) == 2


def test_the_same_as_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "acceptance.png"
    ending.picture(MEASURED, file)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_speeds_are_told_beside_what_a_round_costs() -> None:
    from eyas.demo.acts import speeds

    drafted = answers(1)
    alone = replace(drafted.generations[0], seconds=1.0, acceptance=None)
    plain = replace(drafted, generations=(alone,))
    # two tokens in a second either way: one round of 1 s, or two steps of half a second
    assert speeds(plain, drafted) == (
        "alone 2.0 tokens/s, drafted 2.0 (1.00x; tau 2.00, a round costs R = 2.00 steps)"
    )
