"""What a drafter's matrices are as served, each against what the engine's source says it copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.model.drafter_files import DRAFTED, HIDDEN, INNER, config, save, served_by, tensors
from torch import Tensor

from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError, EngineError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter

OLD, NEW, VLLM = "sglang@0.5.10.post1", "sglang@0.5.23", "vllm@0.33.0:v1"
ROLE = "layers.0."


@pytest.fixture(scope="module")
def target_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.model.conftest import save_tiny_llama

    return save_tiny_llama(tmp_path_factory.mktemp("llama") / "model", tied=False)


@pytest.fixture(scope="module")
def target(target_dir: Path) -> Target:
    return load_target(target_dir)


Build = Callable[..., Drafter]


@pytest.fixture
def build(target_dir: Path, target: Target, tmp_path: Path) -> Build:
    def build(
        engine: str,
        weights: dict[str, Tensor],
        *launch: str,
        fill: Fill = Fill.NORMAL,
        seed: int = 0,
        **values: object,
    ) -> Drafter:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        checkpoint = save(place, config(**values), weights)
        served = served_by(engine, checkpoint, target_dir, *launch)
        return served_drafter(served, checkpoint, target, fill=fill, seed=seed)

    return build


def ramp(*shape: int) -> Tensor:
    """Values that are all different, so that no wrong row or column goes unseen."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) / 1000


@pytest.mark.parametrize("engine", [OLD, NEW, VLLM])
@pytest.mark.parametrize(
    ("role", "shape", "expected"),
    [
        ("self_attn.q_proj", (64, 64), lambda held: held[:32]),
        ("self_attn.k_proj", (40, 64), lambda held: held[:16]),
        ("self_attn.v_proj", (17, 64), lambda held: held[:16]),
        ("self_attn.o_proj", (32, 50), lambda held: held[:, :32]),
        ("mlp.gate_proj", (90, 32), lambda held: held[:INNER]),
        ("mlp.up_proj", (41, 32), lambda held: held[:INNER]),
        ("mlp.down_proj", (32, 70), lambda held: held[:, :INNER]),
    ],
)
def test_what_is_too_large_is_cut_from_its_start(
    build: Build,
    engine: str,
    role: str,
    shape: tuple[int, ...],
    expected: Callable[[Tensor], Tensor],
) -> None:
    held = ramp(*shape)
    drafter = build(engine, tensors(**{f"{role}.weight".replace(".", "__"): held}))
    state = drafter.state_dict()
    torch.testing.assert_close(state[f"{ROLE}{role}.weight"], expected(held), atol=0, rtol=0)
    # and nothing else moves
    sound = build(engine, tensors()).state_dict()
    assert [r for r in state if not torch.equal(state[r], sound[r])] == [f"{ROLE}{role}.weight"]


@pytest.mark.parametrize("engine", [OLD, NEW])
@pytest.mark.parametrize(
    ("role", "shape", "padding"),
    [
        ("self_attn.o_proj", (32, 20), (0, 12)),
        ("mlp.down_proj", (32, 7), (0, INNER - 7)),
        ("mlp.gate_proj", (30, 32), (0, 0, 0, INNER - 30)),
        ("mlp.up_proj", (1, 32), (0, 0, 0, INNER - 1)),
    ],
)
def test_sglang_completes_what_is_too_small_with_zeros(
    build: Build, engine: str, role: str, shape: tuple[int, ...], padding: tuple[int, ...]
) -> None:
    held = ramp(*shape) + 1
    drafter = build(engine, tensors(**{f"{role}.weight".replace(".", "__"): held}))
    wanted = torch.nn.functional.pad(held, padding)
    torch.testing.assert_close(drafter.state_dict()[f"{ROLE}{role}.weight"], wanted)


def prefused() -> dict[str, Tensor]:
    weights = tensors()
    attention, mlp = "midlayer.self_attn.", "midlayer.mlp."
    weights[f"{attention}qkv_proj.weight"] = torch.cat(
        [weights.pop(f"{attention}{part}_proj.weight") for part in "qkv"]
    )
    weights[f"{mlp}gate_up_proj.weight"] = torch.cat(
        [weights.pop(f"{mlp}{part}_proj.weight") for part in ("gate", "up")]
    )
    return weights


@pytest.mark.parametrize("engine", [OLD, NEW, VLLM])
def test_a_prefused_file_is_the_drafter_that_it_was_fused_from(build: Build, engine: str) -> None:
    apart, fused = build(engine, tensors()).state_dict(), build(engine, prefused()).state_dict()
    assert apart.keys() == fused.keys()
    assert all(torch.equal(apart[role], fused[role]) for role in apart)


def test_a_prefused_file_is_read_as_trained_too(tmp_path: Path, target: Target) -> None:
    apart = trained_drafter(save(tmp_path / "apart", config(), tensors()), target).state_dict()
    fused = trained_drafter(save(tmp_path / "fused", config(), prefused()), target).state_dict()
    assert all(torch.equal(apart[role], fused[role]) for role in apart)


def test_a_part_that_is_read_after_the_fused_tensor_wins(build: Build) -> None:
    weights = prefused() | {"midlayer.self_attn.v_proj.weight": ramp(16, 64)}
    state, sound = build(NEW, weights).state_dict(), build(NEW, tensors()).state_dict()
    assert torch.equal(state[f"{ROLE}self_attn.v_proj.weight"], ramp(16, 64))
    for part in "qk":
        role = f"{ROLE}self_attn.{part}_proj.weight"
        assert torch.equal(state[role], sound[role])


@pytest.mark.parametrize("engine", [OLD, NEW, VLLM])
def test_of_a_parameter_in_parts_the_missing_part_alone_is_unknown(
    build: Build, engine: str
) -> None:
    state = build(engine, tensors(self_attn__k_proj__weight=None), fill=Fill.ZEROS).state_dict()
    sound = build(engine, tensors()).state_dict()
    assert not state[f"{ROLE}self_attn.k_proj.weight"].any()
    for part in "qv":
        role = f"{ROLE}self_attn.{part}_proj.weight"
        assert torch.equal(state[role], sound[role])


def test_a_bias_that_an_engine_makes_is_there_and_uninitialised_or_zero(build: Build) -> None:
    role = f"{ROLE}self_attn.o_proj.bias"
    old = build("sglang@0.5.8", tensors(), attention_bias=True)
    bias = old.state_dict()[role]
    assert bias.shape == (HIDDEN,)
    assert bias.std() == pytest.approx(0.02, rel=0.5)
    x = torch.ones(HIDDEN)
    plain = build("sglang@0.5.8", tensors())
    with torch.no_grad():
        moved = old.layers[0].self_attn.o_proj(x) - plain.layers[0].self_attn.o_proj(x)  # type: ignore[union-attr,operator]
    torch.testing.assert_close(moved, bias)
    assert not build(NEW, tensors(), attention_bias=True).state_dict()[role].any()
    assert role not in plain.state_dict()


def test_a_bias_in_the_file_lands_in_the_one_that_the_engine_makes(build: Build) -> None:
    weights = tensors(self_attn__o_proj__bias=ramp(HIDDEN))
    role = f"{ROLE}self_attn.o_proj.bias"
    assert torch.equal(build(NEW, weights, bias=True).state_dict()[role], ramp(HIDDEN))
    assert role not in build(NEW, weights).state_dict()


def test_the_bias_of_fc_is_torch_s_own_random_one(build: Build) -> None:
    fills = [build(NEW, tensors(), bias=True, fill=fill).state_dict()["fc.bias"] for fill in Fill]
    assert all(torch.equal(fills[0], other) for other in fills)
    bound = (3 * HIDDEN) ** -0.5
    assert 0.5 * bound < float(fills[0].abs().max()) <= bound


LOST = tensors("layers.0.")  # SGLang before 0.5.12 drops the whole layer


def test_zeros_normal_and_shuffled_stand_in_for_a_lost_layer(build: Build) -> None:
    sound = build(NEW, LOST).state_dict()
    states = {fill: build(OLD, LOST, fill=fill).state_dict() for fill in Fill}
    for role in (r for r in sound if r.startswith(ROLE)):
        if "norm" in role:
            assert all(torch.equal(s[role], torch.ones(HIDDEN)) for s in states.values())
            continue
        assert not states[Fill.ZEROS][role].any()
        assert states[Fill.NORMAL][role].std() == pytest.approx(0.02, rel=0.1)
        shuffled = states[Fill.SHUFFLED][role]
        assert not torch.equal(shuffled, sound[role])
        assert torch.equal(shuffled.flatten().sort().values, sound[role].flatten().sort().values)
    for role in (r for r in sound if not r.startswith(ROLE)):
        assert all(torch.equal(state[role], sound[role]) for state in states.values())


@pytest.mark.parametrize("fill", [Fill.NORMAL, Fill.SHUFFLED])
def test_a_seed_decides_every_fill_and_each_role_by_itself(build: Build, fill: Fill) -> None:
    first = build(OLD, LOST, fill=fill, seed=3).state_dict()
    again = build(OLD, LOST, fill=fill, seed=3).state_dict()
    other = build(OLD, LOST, fill=fill, seed=4).state_dict()
    role = f"{ROLE}mlp.up_proj.weight"
    assert all(torch.equal(first[r], again[r]) for r in first)
    assert not torch.equal(first[role], other[role])
    # where less is lost, what is lost still gets the same
    one = build(OLD, tensors(mlp__up_proj__weight=None), fill=fill, seed=3).state_dict()
    if fill is Fill.NORMAL:
        assert torch.equal(one[role], first[role])


def test_an_engine_that_refuses_has_no_drafter(build: Build) -> None:
    with pytest.raises(EngineError, match="does not serve this drafter: tensor"):
        build(NEW, tensors(fc__weight=ramp(HIDDEN, HIDDEN)))


def test_a_map_out_of_the_vocabulary_is_a_crash(build: Build) -> None:
    absolute = tensors(d2t=torch.arange(DRAFTED) * 4)
    with pytest.raises(EngineError, match="names token 100 of a vocabulary of 97"):
        build(NEW, absolute)
    with pytest.raises(EngineError, match="would crash with this drafter: its map has shape"):
        build(NEW, tensors(d2t=torch.arange(DRAFTED - 1)))
    longer = tensors(d2t=torch.cat([torch.arange(DRAFTED) * 3, torch.tensor([0, 0])]))
    assert torch.equal(build(NEW, longer).d2t, torch.arange(DRAFTED) * 3)


def test_a_sliding_window_is_not_run_where_the_engine_slides(build: Build) -> None:
    sliding = {"layer_types": ["sliding_attention"], "sliding_window": 4}
    with pytest.raises(UnsupportedError, match=r"a sliding window \(config\.json :: layer_types\)"):
        build(VLLM, tensors(), **sliding)
    build(NEW, tensors(), **sliding)
    build(VLLM, tensors(), layer_types=["full_attention"])


def test_as_trained_a_wrong_shape_is_named(tmp_path: Path, target: Target) -> None:
    checkpoint = save(tmp_path / "x", config(), tensors(self_attn__q_proj__weight=ramp(64, 64)))
    with pytest.raises(CheckpointError, match=r"q_proj\.weight is 64 x 64, but the config asks"):
        trained_drafter(checkpoint, target)


@pytest.mark.parametrize("first", [-1, 97])
def test_as_trained_a_map_out_of_the_vocabulary_is_refused(
    tmp_path: Path, target: Target, first: int
) -> None:
    offsets = torch.arange(DRAFTED) * 3
    offsets[0] = first
    checkpoint = save(tmp_path / "x", config(), tensors(d2t=offsets))
    with pytest.raises(
        CheckpointError, match=rf"its map names token {first} of a vocabulary of 97"
    ):
        trained_drafter(checkpoint, target)


def test_a_later_weight_file_beside_it_is_what_is_served(
    tmp_path: Path, target_dir: Path, target: Target
) -> None:
    save(tmp_path / "draft", config(), tensors())
    name = "midlayer.self_attn.q_proj.weight"
    stale = tensors(self_attn__q_proj__weight=ramp(*tensors()[name].shape))
    save(tmp_path / "older", config(), stale)
    (tmp_path / "older" / "model.safetensors").rename(tmp_path / "draft" / "old.safetensors")
    checkpoint = open_checkpoint(str(tmp_path / "draft"))

    served = served_by(NEW, checkpoint, target_dir)
    drafter = served_drafter(served, checkpoint, target, fill=Fill.NORMAL)
    held = drafter.state_dict()[f"{ROLE}self_attn.q_proj.weight"]
    assert torch.equal(held, stale[name])
    trained = trained_drafter(checkpoint, target).state_dict()
    assert not torch.equal(trained[f"{ROLE}self_attn.q_proj.weight"], held)
