"""What a drafter computes as served, against EAGLE-3's formulas written out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.model.drafter_files import (
    DRAFTED,
    HEADS,
    HIDDEN,
    KV,
    D,
    config,
    save,
    served_by,
    tensors,
)
from torch import Tensor

from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.decode.greedy import generate
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import LastState, Unfused

OLD, NEW, V1, V2 = "sglang@0.5.11", "sglang@0.5.23", "vllm@0.32.0:v1", "vllm@0.32.0:v2"
EAGLE = "speculative_algorithm=EAGLE"
NO_STATES = {"eagle_config": {"use_aux_hidden_state": False}}
EPS = 1e-5


class Scene:
    """A target, its states at every boundary as transformers has them, and ids."""

    def __init__(self, directory: Path) -> None:
        from transformers import AutoModelForCausalLM

        self.directory = directory
        self.target: Target = load_target(directory)
        random = torch.Generator().manual_seed(5)
        self.ids_BT = torch.randint(0, 97, (2, 9), generator=random)
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        last: list[Any] = []
        model.model.layers[-1].register_forward_hook(lambda _, __, out: last.append(out))
        with torch.no_grad():
            out = model(self.ids_BT, output_hidden_states=True)
        before_norm = last[0][0] if isinstance(last[0], tuple) else last[0]
        self.states = [*out.hidden_states[:-1], before_norm]
        self.normed = out.hidden_states[-1]  # transformers' last entry is after the final norm
        self.embedding = model.get_input_embeddings().weight.detach()
        self.head = model.get_output_embeddings().weight.detach()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    from tests.model.conftest import save_tiny_llama

    return Scene(save_tiny_llama(tmp_path_factory.mktemp("llama") / "model", tied=False))


def served(
    scene: Scene,
    place: Path,
    engine: str,
    weights: Mapping[str, Tensor],
    *launch: str,
    **values: Any,
) -> Drafter:
    checkpoint = save(place, config(**values), weights)
    reading = served_by(engine, checkpoint, scene.directory, *launch)
    return served_drafter(reading, checkpoint, scene.target, fill=Fill.ZEROS)


@torch.inference_mode()
def first_step(drafter: Drafter, scene: Scene) -> Tensor:
    """The served drafter's logits after the whole prompt."""
    target, ids_BT = scene.target, scene.ids_BT
    cache = target.new_cache(*ids_BT.shape)
    reading = target.forward(ids_BT, cache, boundaries_read(drafter, target))
    hidden = conditioned(drafter, target, reading)
    draft_cache = drafter.new_cache(*ids_BT.shape)
    return drafter.logits(drafter.step(ids_BT.roll(-1, dims=1), hidden, draft_cache))


def rms(x: Tensor, gain: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * gain


def turned(x: Tensor, theta: float) -> Tensor:
    """[B, T, heads, D] rotated, channel j with channel j + D/2."""
    half = D // 2
    angles = torch.arange(x.shape[1])[:, None] / theta ** (torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def by_hand(
    weights: Mapping[str, Tensor],
    hidden: Tensor,
    embedded: Tensor,
    head: Tensor,
    *,
    theta: float = 500.0,
    normed_residual: bool = False,
) -> Tensor:
    """Logits of one EAGLE-3 decoder layer over `hidden` states, after fc or without it."""
    w = {name.removeprefix("midlayer."): tensor for name, tensor in weights.items()}
    batch, new, _ = hidden.shape
    normed = rms(hidden, w["hidden_norm.weight"])
    x = torch.cat([rms(embedded, w["input_layernorm.weight"]), normed], dim=-1)
    q, k, v = ((x @ w[f"self_attn.{part}_proj.weight"].T).view(batch, new, -1, D) for part in "qkv")
    q, k = turned(q, theta), turned(k, theta)
    k, v = (part.repeat_interleave(HEADS // KV, dim=2) for part in (k, v))
    scores = torch.einsum("bthd,bshd->bhts", q, k) / D**0.5
    scores = scores.masked_fill(torch.ones(new, new).triu(1).bool(), float("-inf"))
    mixed = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).flatten(2)
    out = (normed if normed_residual else hidden) + mixed @ w["self_attn.o_proj.weight"].T
    y = rms(out, w["post_attention_layernorm.weight"])
    gated = torch.nn.functional.silu(y @ w["mlp.gate_proj.weight"].T)
    out = out + (gated * (y @ w["mlp.up_proj.weight"].T)) @ w["mlp.down_proj.weight"].T
    return rms(out, w["norm.weight"]) @ head.T


def embedded(scene: Scene) -> Tensor:
    return scene.embedding[scene.ids_BT.roll(-1, dims=1)]


def fused(scene: Scene, weights: Mapping[str, Tensor], *boundaries: int) -> Tensor:
    states = torch.cat([scene.states[k] for k in boundaries], dim=-1)
    return states @ weights["fc.weight"].T


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_the_formulas_are_those_of_a_sound_drafter(scene: Scene, tmp_path: Path) -> None:
    weights = tensors()
    expected = by_hand(
        weights, fused(scene, weights, 2, 4, 5), embedded(scene), weights["lm_head.weight"]
    )
    for index, engine in enumerate([OLD, NEW, V1, V2]):
        close(first_step(served(scene, tmp_path / str(index), engine, weights), scene), expected)


def test_a_normed_residual_is_dropped_by_sglang_and_kept_by_vllm(
    scene: Scene, tmp_path: Path
) -> None:
    weights = tensors()
    states = fused(scene, weights, 2, 4, 5)
    head = weights["lm_head.weight"]
    dropped = by_hand(weights, states, embedded(scene), head)
    kept = by_hand(weights, states, embedded(scene), head, normed_residual=True)
    assert (dropped - kept).abs().max() > 0.1
    on = {"norm_before_residual": True}
    trained = trained_drafter(save(tmp_path / "on", config(**on), weights), scene.target)
    off = trained_drafter(save(tmp_path / "off", config(), weights), scene.target)
    sglang = served(scene, tmp_path / "s", NEW, weights, **on)
    vllm = served(scene, tmp_path / "v", V1, weights, **on)
    close(first_step(trained, scene), kept)
    close(first_step(sglang, scene), dropped)
    assert torch.equal(first_step(sglang, scene), first_step(off, scene))
    assert torch.equal(first_step(vllm, scene), first_step(trained, scene))


@pytest.mark.parametrize("engine", ["sglang@0.5.10.post1", OLD, NEW])
def test_eagle_takes_the_last_normed_state_and_the_target_s_first_head_rows(
    scene: Scene, tmp_path: Path, engine: str
) -> None:
    weights = tensors()
    drafter = served(scene, tmp_path / "x", engine, weights, EAGLE)
    assert isinstance(drafter.spec.conditioning, LastState)
    expected = by_hand(weights, scene.normed, embedded(scene), scene.head[:DRAFTED])
    close(first_step(drafter, scene), expected)
    ids = torch.arange(DRAFTED)
    assert torch.equal(drafter.target_ids(ids), ids)  # no map
    assert not any(role.startswith(("fc", "lm_head", "d2t")) for role in drafter.state_dict())


@pytest.mark.parametrize("engine", [OLD, NEW, V1])
def test_without_states_fc_alone_is_skipped(scene: Scene, tmp_path: Path, engine: str) -> None:
    weights = tensors()
    drafter = served(scene, tmp_path / "x", engine, weights, **NO_STATES)
    assert isinstance(drafter.spec.conditioning, LastState)
    head = weights["lm_head.weight"]
    expected = by_hand(weights, scene.normed, embedded(scene), head)
    close(first_step(drafter, scene), expected)
    # a state from before the final norm would be something else
    other = by_hand(weights, scene.states[-1], embedded(scene), head)
    assert (other - expected).abs().max() > 0.1
    assert torch.equal(drafter.target_ids(torch.arange(DRAFTED)), torch.arange(DRAFTED) * 4)


@pytest.mark.parametrize(
    ("engine", "values", "boundary"),
    [
        (OLD, {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [4]}}, 5),
        (V2, {"eagle_aux_hidden_state_layer_ids": [4], **NO_STATES}, 4),
    ],
)
def test_one_captured_state_goes_past_fc_as_it_is(
    scene: Scene, tmp_path: Path, engine: str, values: dict[str, Any], boundary: int
) -> None:
    weights = tensors()
    drafter = served(scene, tmp_path / "x", engine, weights, **values)
    assert isinstance(drafter.spec.conditioning, Unfused)
    assert boundaries_read(drafter, scene.target) == (boundary,)
    expected = by_hand(weights, scene.states[boundary], embedded(scene), weights["lm_head.weight"])
    close(first_step(drafter, scene), expected)


NESTED = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 6]}}
TOP = {"eagle_aux_hidden_state_layer_ids": [1, 5, 6]}


@pytest.mark.parametrize(
    ("engine", "values", "boundaries"),
    [
        (NEW, NESTED, (2, 6, 7)),  # after a layer
        (NEW, TOP, (2, 4, 5)),  # not read: the default
        ("sglang@0.5.10.post1", NESTED, (2, 4, 5)),  # CUDA graphs put the default in place
        (V1, NESTED, (1, 5, 6)),  # before a layer
        (V1, TOP, (1, 5, 6)),
        (V2, TOP, (1, 5, 6)),
        (V2, NESTED, (2, 4, 5)),  # not read
    ],
)
def test_layer_ids_are_the_boundaries_that_the_engine_captures(
    scene: Scene,
    tmp_path: Path,
    engine: str,
    values: dict[str, Any],
    boundaries: tuple[int, ...],
) -> None:
    weights = tensors()
    drafter = served(scene, tmp_path / "x", engine, weights, **values)
    expected = by_hand(
        weights, fused(scene, weights, *boundaries), embedded(scene), weights["lm_head.weight"]
    )
    close(first_step(drafter, scene), expected)


def test_an_embedding_of_its_own_is_replaced_by_sglang_and_kept_by_vllm(
    scene: Scene, tmp_path: Path
) -> None:
    own = torch.randn(97, HIDDEN, generator=torch.Generator().manual_seed(9))
    weights = tensors(embed_tokens__weight=own)
    states, head = fused(scene, weights, 2, 4, 5), weights["lm_head.weight"]
    close(
        first_step(served(scene, tmp_path / "s", NEW, weights), scene),
        by_hand(weights, states, embedded(scene), head),
    )
    close(
        first_step(served(scene, tmp_path / "v", V1, weights), scene),
        by_hand(weights, states, own[scene.ids_BT.roll(-1, dims=1)], head),
    )


def test_rope_is_the_one_that_the_engine_reads(scene: Scene, tmp_path: Path) -> None:
    weights = tensors()
    values = {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}
    states, head = fused(scene, weights, 2, 4, 5), weights["lm_head.weight"]
    for index, (engine, theta) in enumerate([("sglang@0.5.8", 10000.0), (NEW, 7.0), (V1, 7.0)]):
        drafter = served(scene, tmp_path / str(index), engine, weights, **values)
        expected = by_hand(weights, states, embedded(scene), head, theta=theta)
        close(first_step(drafter, scene), expected)


@pytest.mark.parametrize(
    ("engine", "normed"), [(OLD, False), ("sglang@0.5.12", True), (NEW, True), (V1, True)]
)
def test_feedback_is_normed_where_the_engine_reads_norm_output(
    scene: Scene, tmp_path: Path, engine: str, normed: bool
) -> None:
    weights = tensors()
    drafter = served(scene, tmp_path / "x", engine, weights, norm_output=True)
    output = torch.linspace(-2, 3, HIDDEN)
    expected = rms(output, weights["norm.weight"]) if normed else output
    with torch.inference_mode():
        close(drafter.feedback(output), expected)


def test_maps_are_those_that_the_engine_makes(scene: Scene, tmp_path: Path) -> None:
    ids = torch.arange(DRAFTED)
    # absolute ids are taken for offsets
    absolute = tensors(d2t=ids * 2)
    for index, engine in enumerate([NEW, V1]):
        drafter = served(scene, tmp_path / str(index), engine, absolute)
        assert torch.equal(drafter.target_ids(ids), ids * 3)
    # without a map draft ids are used as they are
    for index, engine in enumerate([NEW, V1]):
        drafter = served(scene, tmp_path / f"none{index}", engine, tensors(d2t=None))
        assert torch.equal(drafter.target_ids(ids), ids)


@pytest.mark.parametrize(
    ("engine", "launch", "values"),
    [(NEW, (EAGLE,), {}), (V1, (), NO_STATES), (V2, (), {**TOP, "norm_before_residual": True})],
)
def test_greedy_output_is_the_target_s_own_however_it_is_served(
    scene: Scene, tmp_path: Path, engine: str, launch: tuple[str, ...], values: dict[str, Any]
) -> None:
    drafter = served(scene, tmp_path / "x", engine, tensors(), *launch, **values)
    prompt = scene.ids_BT[0].tolist()
    plain = generate(scene.target, prompt, max_new=20, stop_at_eos=False)
    drafted = generate(
        scene.target, prompt, max_new=20, drafter=drafter, steps=3, stop_at_eos=False
    )
    assert drafted.tokens == plain.tokens
