"""Where an engine loads all and computes as trained, as served is as trained, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.model.drafter_files import config, save, served_by, tensors
from torch import Tensor

from eyas.checkpoint import Checkpoint, open_target
from eyas.checks import Outcome, check
from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.engines import EngineRef, Launch
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Landing, Unfilled

SGLANG = ["0.5.8", "0.5.9", "0.5.10", "0.5.10.post1", *(f"0.5.{n}" for n in range(11, 24))]
ENGINES = [f"sglang@{version}" for version in SGLANG] + [
    f"vllm@{version}:{runner}" for version in ("0.32.0", "0.33.0") for runner in ("v1", "v2")
]
H = 32
OWN = torch.linspace(-1, 1, 97 * H).reshape(97, H)
IDS = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}}  # boundaries 2, 4, 5
KINDS: dict[str, tuple[dict[str, Any], dict[str, Tensor | None]]] = {
    "plain": ({}, {}),
    "default ids written out": (IDS, {}),
    "own embedding": ({}, {"embed_tokens__weight": OWN}),
    "normed residual": ({"norm_before_residual": True}, {}),
    "EAGLE-3.1": (
        {"norm_output": True, "fc_norm": True},
        {f"fc_norm__{i}__weight": torch.linspace(0.5, 1.5, H) for i in range(3)},
    ),
    "norm before fc": (
        {"norm_before_fc": True},
        {"input_norm__weight": torch.linspace(0.5, 1.5, 3 * H)},
    ),
    "whole vocabulary": (
        {"draft_vocab_size": 97},
        {"lm_head__weight": OWN.flip(0), "d2t": None},
    ),
}


@torch.inference_mode()
def chain(drafter: Drafter, target: Target, ids_BT: Tensor) -> list[Tensor]:
    """Logits of a first step over `ids_BT` and of two more from the drafter's own feedback."""
    reading = target.forward(
        ids_BT, target.new_cache(len(ids_BT), 32), boundaries_read(drafter, target)
    )
    hidden, tokens = conditioned(drafter, target, reading), ids_BT.roll(-1, dims=1)
    cache, found = drafter.new_cache(len(ids_BT), 32), []
    for _ in range(3):
        output = drafter.step(tokens, hidden, cache)[:, -1:]
        found.append(drafter.logits(output))
        hidden = drafter.feedback(output)
        tokens = drafter.target_ids(found[-1].argmax(dim=-1))
    return found


def wholly(landing: Landing) -> bool:
    """Whether everything lands, uncut, and nothing is left unfilled."""
    cut = any(t.cut for t in landing.tensors)
    padded = any(s.zeros for p in landing.parameters for s in p.segments)
    # a norm that the engine makes and never calls has no role
    unfilled = any(
        s.role is not None and isinstance(s.source, Unfilled)
        for p in landing.parameters
        for s in p.segments
        if p.replaced is None
    )
    return not (landing.lost or unfilled or cut or padded)


def passes(engine: str, checkpoint: Checkpoint, target: Path) -> bool:
    """Whether `eyas check` finds nothing at all to say."""
    report = check(
        checkpoint, [EngineRef.parse(engine)], target=open_target(str(target)), launch=Launch()
    )
    return report.engines[0].outcome is Outcome.PASS and not report.findings


def two_layers(norm: str) -> dict[str, Tensor]:
    """A drafter whose second layer calls `norm` before attention."""
    weights = tensors("layers.0.")
    inner = {n.removeprefix("layers.0."): t for n, t in weights.items() if "layers.0." in n}
    for part in "qkv":
        inner[f"self_attn.{part}_proj.weight"] = inner[f"self_attn.{part}_proj.weight"][:, :H]
    for other in {"input_layernorm", "hidden_norm"} - {norm}:
        del inner[f"{other}.weight"]
    return weights | {f"layers.1.{name}": tensor / 2 for name, tensor in inner.items()}


@pytest.mark.parametrize(
    ("norm", "engines"), [("hidden_norm", "sglang"), ("input_layernorm", "vllm")]
)
def test_a_second_layer_is_as_trained_where_the_engine_calls_its_norm(
    norm: str, engines: str, tiny_llama: Path, tmp_path: Path, ids_BT: Tensor
) -> None:
    checkpoint = save(tmp_path / "draft", config(num_hidden_layers=2), two_layers(norm))
    target = load_target(tiny_llama)
    before = chain(trained_drafter(checkpoint, target), target, ids_BT)
    equal = []
    for engine in ENGINES:
        served = served_by(engine, checkpoint, tiny_llama)
        if served.refusal is not None:  # SGLang before 0.5.12 builds one layer
            continue
        after = chain(served_drafter(served, checkpoint, target, fill=Fill.ZEROS), target, ids_BT)
        same = all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        assert same == engine.startswith(engines), engine
        equal += [engine] if same else []
    assert len(equal) == {"sglang": 12, "vllm": 4}[engines]


@pytest.mark.parametrize("layer", ["midlayer.", "layers.0."])
@pytest.mark.parametrize("kind", KINDS)
def test_what_lands_wholly_is_what_was_trained(
    kind: str, layer: str, tiny_llama: Path, tmp_path: Path, ids_BT: Tensor
) -> None:
    values, weights = KINDS[kind]
    checkpoint = save(tmp_path / "draft", config(**values), tensors(layer, **weights))
    target = load_target(tiny_llama)
    trained = trained_drafter(checkpoint, target)
    before, state = chain(trained, target, ids_BT), trained.state_dict()
    accepted, passed = [], []
    for engine in ENGINES:
        served = served_by(engine, checkpoint, tiny_llama)
        if served.refusal is not None or served.landing is None or not wholly(served.landing):
            continue
        accepted.append(engine)
        drafter = served_drafter(served, checkpoint, target, fill=Fill.NORMAL)
        for role, held in drafter.state_dict().items():
            assert torch.equal(held, state[role]), (engine, role)
        after = chain(drafter, target, ids_BT)
        same = all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        if passes(engine, checkpoint, tiny_llama):
            passed.append(engine)
            assert same, engine
        elif kind in ("own embedding", "normed residual"):
            assert not same, engine
    assert [e for e in accepted if e.startswith("vllm")], "vLLM reads every kind here"
    if layer == "layers.0.":
        assert not any(e in accepted for e in ENGINES[:5]), "lost before 0.5.12"
    if kind in ("plain", "whole vocabulary"):
        assert passed == accepted
    if kind == "own embedding":
        assert not any(e.startswith("sglang") for e in passed), "SGLang puts the target's there"
