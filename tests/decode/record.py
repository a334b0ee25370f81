"""What the drafter in assets/ accepts of SmolLM2's answers: measured, recorded, and held to.

Renew recorded.json after the drafter was replaced:

    python -m tests.decode.record
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from eyas.checkpoint import Checkpoint, open_checkpoint
from eyas.data.answers import chat_ids
from eyas.data.prompts import read_prompts
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all, one_of_each
from eyas.decode.outcomes import fingerprint
from eyas.demo.assets import PROMPTS, trained_here
from eyas.model.drafter import Drafter
from eyas.model.load import load_target, load_tokenizer
from eyas.model.smollm2 import ensure_smollm2
from eyas.model.target import Target
from eyas.model.trained import trained_drafter

COMMAND = "python -m tests.decode.record"
RECORDED = Path(__file__).with_name("recorded.json")
STEPS = 3
# Four parts of five prompts, so that two workers can share them.
PARTS = range(4)
CHAINS = (1, 3, 5, 8)
# On other hardware a near-tie may send an answer another way. Where it is one of six, and is
# accepted 0.3 worse, the mean moves by 0.05: this is room for two such answers.
MARGIN = 0.1


def demo_prompts(directory: Path) -> list[TokenisedPrompt]:
    """The demo's 24 prompts for the target in `directory`."""
    tokenizer = load_tokenizer(directory)
    return [
        TokenisedPrompt(category=prompt.category, ids=tuple(chat_ids(tokenizer, prompt)))
        for prompt in read_prompts(PROMPTS)
    ]


def answers_of_a_part(
    target: Target, prompts: Sequence[TokenisedPrompt], part: int, drafter: Drafter | None
) -> Answers:
    """128 tokens for each of five prompts, going on after an EOS token."""
    chosen = prompts[5 * part : 5 * part + 5]
    return answer_all(target, chosen, max_new=128, drafter=drafter, steps=STEPS, stop_at_eos=False)


def answers_by_chains(
    target: Target, prompts: Sequence[TokenisedPrompt], steps: int, drafter: Drafter | None
) -> Answers:
    """32 tokens for a prompt of each category, in chains of `steps` drafts."""
    chosen = one_of_each(prompts)
    return answer_all(target, chosen, max_new=32, drafter=drafter, steps=steps, stop_at_eos=False)


def floor(recorded: Mapping[str, Any], name: str) -> float:
    """What tau must reach where the record has more by `MARGIN`."""
    tau: float = recorded["tau"][name]
    return tau - MARGIN


def measure(target: Target, prompts: Sequence[TokenisedPrompt], found: Checkpoint) -> str:
    """The record of a drafter as JSON: tau over all rounds, the bonus token included."""
    drafter = trained_drafter(found, target)
    taus = {
        f"part {part}": answers_of_a_part(target, prompts, part, drafter).acceptance.tau
        for part in PARTS
    } | {
        f"K = {steps}": answers_by_chains(target, prompts, steps, drafter).acceptance.tau
        for steps in CHAINS
    }
    rounded = {name: None if tau is None else round(tau, 3) for name, tau in taus.items()}
    document = {"renew": COMMAND, "drafter": fingerprint(found), "tau": rounded}
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    directory = ensure_smollm2()
    record = measure(
        load_target(directory, dtype=torch.float32),
        demo_prompts(directory),
        open_checkpoint(trained_here()),
    )
    RECORDED.write_text(record)
    sys.stdout.write(record)
