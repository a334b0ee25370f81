"""Make the fixtures that hold eyas's drafter to speculators 0.9.0's own Eagle3DraftModel.

    python3.11 -m venv spec && . spec/bin/activate
    pip install torch==2.13.0
    pip install --no-deps speculators==0.9.0 hs-connectors==0.9.0
    pip install torch==2.13.0 transformers==5.19.0 "datasets<=5.1.0" pydantic pydantic-settings \\
        loguru openai aiohttp httpx typer rich psutil protobuf tqdm
    python tests/model/make_speculators_fixtures.py tests/model/fixtures/speculators-0.9.0

speculators goes in without its dependencies because those, taken whole, replace torch by the build
that the newest torchvision wants, and its EAGLE-3 part needs neither torchvision nor torchaudio.

Nothing here computes a drafter: the checkpoint of each case is written by speculators'
`save_pretrained`, and the expected tensors are what its own `forward` passes through its last
decoder layer and its `lm_head` in three test-time-training steps, caught by hooks. eyas is not
imported.

A case NAME is the directory NAME/ (config.json, model.safetensors) and NAME.safetensors:
`ids` [T] and `captured` [T, C], paired slot by slot as the model takes them (the token of position
i+1 with the states of position i), and for step k = 1, 2, 3 `hidden.k` [T, H], the decoder's
output before the final norm, and `logits.k` [T, Vd]. At step k slot i holds the token `ids[i+k-1]`
and the state that step k-1 fed back there; slots whose token lies past the end hold id 0.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from torch import Tensor
from transformers import LlamaConfig, Qwen3Config

STEPS, SLOTS = 3, 12
HIDDEN, VOCAB, DRAFT_VOCAB = 32, 64, 24
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 8.0,
    "original_max_position_embeddings": 16,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One drafter: its family, its speculators flags, and keys of its decoder layer."""

    flags: dict[str, Any] = field(default_factory=dict)
    layer: dict[str, Any] = field(default_factory=dict)
    qwen3: bool = False
    boundaries: tuple[int, ...] = (2, 4, 5)
    draft_vocab: int = DRAFT_VOCAB


CASES = {
    "plain": Case(),
    "norm_before_residual": Case(flags={"norm_before_residual": True}),
    "norm_before_fc": Case(flags={"norm_before_fc": True}),
    "fc_norm": Case(flags={"fc_norm": True}, boundaries=(1, 3, 5, 8)),
    "norm_output": Case(flags={"norm_output": True}),
    "two_layers": Case(layer={"num_hidden_layers": 2}, flags={"norm_before_residual": True}),
    "qwen3": Case(qwen3=True),
    "qwen3_three_layers_all_flags": Case(
        qwen3=True,
        layer={"num_hidden_layers": 3, "intermediate_size": 24},
        flags={"norm_before_residual": True, "fc_norm": True, "norm_output": True},
        boundaries=(0, 8),
    ),
    "speculators_defaults": Case(
        flags={"norm_before_residual": True, "norm_before_fc": True, "norm_output": True}
    ),
    "llama3_rope": Case(layer={"rope_parameters": LLAMA3}),
    "yarn_rope": Case(layer={"rope_parameters": YARN}),
    "whole_vocabulary": Case(draft_vocab=VOCAB),
}


def main(folder: Path) -> None:
    """Write every case into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, case) in enumerate(CASES.items()):
        random = torch.Generator().manual_seed(seed)
        model = drafter_of(case, random)
        model.save_pretrained(folder / name)
        tidy(folder / name)
        save_file(record_of(model, case, random), folder / f"{name}.safetensors")
        print(f"{name}: {sum(f.stat().st_size for f in (folder / name).iterdir())} bytes")


def drafter_of(case: Case, random: torch.Generator) -> Eagle3DraftModel:
    """speculators' model of `case` with random weights, gains of norms around 1."""
    sizes: dict[str, Any] = {
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": VOCAB,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
        **case.layer,
    }
    layer = Qwen3Config(**sizes) if case.qwen3 else LlamaConfig(**sizes)
    layer._attn_implementation = "eager"
    config = Eagle3SpeculatorConfig(
        transformer_layer_config=layer,
        draft_vocab_size=case.draft_vocab,
        eagle_aux_hidden_state_layer_ids=list(case.boundaries),
        speculators_config=SpeculatorsConfig(
            algorithm="eagle3",
            proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=STEPS)],
            default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"]),
        ),
        **case.flags,
    )
    model = Eagle3DraftModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=random)
            if weight.ndim == 1:
                weight.copy_(1.0 + 0.3 * drawn)
            elif name == "embed_tokens.weight":
                weight.copy_(drawn)
            else:
                weight.copy_(1.5 * weight.shape[1] ** -0.5 * drawn)
    kept = torch.randperm(VOCAB, generator=random)[: case.draft_vocab].sort().values
    mask = torch.zeros(VOCAB, dtype=torch.bool)
    mask[kept] = True
    model.load_vocab_mappings(mask, kept - torch.arange(case.draft_vocab))
    return model


def record_of(model: Eagle3DraftModel, case: Case, random: torch.Generator) -> dict[str, Tensor]:
    """Inputs, and what the model's own forward makes of them at each step."""
    ids = torch.randint(1, VOCAB, (1, SLOTS), generator=random)
    captured = torch.randn(1, SLOTS, len(case.boundaries) * HIDDEN, generator=random)
    caught: dict[str, list[Tensor]] = {"hidden": [], "logits": []}

    def catch(what: str) -> Any:
        return lambda module, inputs, output: caught[what].append(output.detach().clone())

    handles = [
        model.layers[-1].register_forward_hook(catch("hidden")),
        model.lm_head.register_forward_hook(catch("logits")),
    ]
    with torch.no_grad():
        model(
            hidden_states=captured,
            input_ids=ids,
            document_ids=torch.zeros(1, SLOTS, dtype=torch.long),
            ttt_steps=STEPS,
        )
    for handle in handles:
        handle.remove()
    record = {"ids": ids[0].clone(), "captured": captured[0].clone()}
    for what, outputs in caught.items():
        if len(outputs) != STEPS:
            raise RuntimeError(f"{what} was caught {len(outputs)} times in {STEPS} steps")
        record |= {f"{what}.{k}": output[0].clone() for k, output in enumerate(outputs, 1)}
    return record


def tidy(directory: Path) -> None:
    """Leave config.json and model.safetensors, and no path of this machine."""
    for file in directory.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            file.unlink()
    config = json.loads((directory / "config.json").read_text())
    if config.get("speculators_version") not in (None, "0.9.0"):
        raise RuntimeError(f"these fixtures are speculators 0.9.0's, not {config}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
