"""The drafter's edges: id maps, dtypes and devices, caches, names, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from tests.model.drafter_cases import CASES, LAST, Change, random_drafter
from torch import Tensor

from eyas.checkpoint import TensorBytes, open_checkpoint, write_checkpoint
from eyas.dialects import specforge
from eyas.errors import EyasError, TargetError, UnsupportedError, UsageError
from eyas.model.drafter import Drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import LaterNorm, Ownership, Rope, VocabMap, declared
from eyas.train.unroll import unroll

# one of each kind of module
KINDS = ("plain", "last state", "norms on q and k", "yarn rope", "two layers", "latent, every flag")


@pytest.fixture
def drafter() -> Drafter:
    return random_drafter(CASES["plain"].spec())


@pytest.fixture(params=KINDS)
def every_drafter(request: pytest.FixtureRequest) -> Drafter:
    return random_drafter(CASES[request.param].spec())


def changed(drafter: Drafter, **values: Any) -> Drafter:
    """A drafter whose spec has other facts, without weights of its own."""
    spec = replace(drafter.spec, **{name: declared(v, "test") for name, v in values.items()})
    embedding, head = drafter._shared
    return Drafter(spec, embedding=embedding, head=head)


@pytest.mark.parametrize(
    ("form", "stored", "expected"),
    [
        (VocabMap.OFFSETS, [3, 3, 4, 9], [3, 4, 6, 12]),
        (VocabMap.ABSOLUTE, [3, 4, 6, 12], [3, 4, 6, 12]),
        (VocabMap.IDENTITY, None, [0, 1, 2, 3]),
        (VocabMap.PREFIX, None, [0, 1, 2, 3]),
    ],
)
def test_draft_ids_by_form_of_the_map(
    drafter: Drafter, form: VocabMap, stored: list[int] | None, expected: list[int]
) -> None:
    mapped = changed(drafter, vocab_map=form, draft_vocab_size=4)
    assert ("d2t" in mapped.state_dict()) == (stored is not None)
    if stored is not None:
        mapped.d2t.copy_(torch.tensor(stored))
    assert mapped.target_ids(torch.tensor([[0, 1], [2, 3]])).flatten().tolist() == expected


@pytest.mark.parametrize("owner", list(Ownership))
def test_a_head_covers_the_draft_vocabulary(drafter: Drafter, owner: Ownership) -> None:
    headed = changed(drafter, head=owner)
    assert headed.head_VH.shape == (15, 12)
    assert ("lm_head.weight" in headed.state_dict()) == (owner is Ownership.OWN)
    lent = {Ownership.TARGET: drafter._shared[1], Ownership.TIED: drafter._shared[0]}
    if owner in lent:
        assert torch.equal(headed.head_VH, lent[owner][:15])


@pytest.mark.parametrize(
    ("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 0.15)], ids=str
)
@torch.inference_mode()
def test_dtypes(every_drafter: Drafter, dtype: torch.dtype, allowed: float) -> None:
    """Narrower numbers give nearly the same states, and every tensor has the dtype asked for."""
    exact, narrow = every_drafter, copy_in(every_drafter, dtype)
    ids, states = inputs(exact)
    expected = drafted(exact, ids, states)
    found = drafted(narrow, ids, states.to(dtype))
    assert found.dtype == dtype
    assert float((found.double() - expected).abs().max() / expected.abs().max()) < allowed


@torch.inference_mode()
def test_nothing_stays_on_another_device(every_drafter: Drafter) -> None:
    """On the meta device, which holds no numbers, a tensor left on the CPU would raise."""
    embedding, head = (matrix.to("meta") for matrix in every_drafter._shared)
    moved = Drafter(every_drafter.spec, embedding=embedding, head=head).to("meta", torch.float64)
    ids, states = (tensor.to("meta") for tensor in inputs(every_drafter))
    assert drafted(moved, ids, states).device.type == "meta"
    assert all(out.device.type == "meta" for out in unroll(moved, ids, states, 3))


def test_a_cache_is_as_long_as_asked(drafter: Drafter) -> None:
    ids, states = inputs(drafter)
    cache = drafter.new_cache(1, 6)
    with torch.inference_mode():
        hidden = drafter.fuse(states)
        drafter.step(ids[:, :5], hidden[:, :5], cache)
        with pytest.raises(UsageError, match="holds 6 slots; 7 were asked for"):
            drafter.step(ids[:, :2], hidden[:, :2], cache)
        drafter.step(ids[:, :1], hidden[:, :1], cache)
    assert cache.length == 6
    with pytest.raises(UsageError, match="cannot roll a cache of 6 slots back to 7"):
        cache.rollback(7)


@pytest.mark.parametrize("norm", list(LaterNorm))
def test_the_names_of_later_layers(drafter: Drafter, norm: LaterNorm) -> None:
    names = set(changed(drafter, num_layers=3, later_norm=norm).state_dict())
    norms = {name for name in names if name.endswith("norm.weight") and ".2." in name}
    assert norms == {f"layers.2.{norm}.weight", "layers.2.post_attention_layernorm.weight"}
    assert "layers.3.mlp.up_proj.weight" not in names


@pytest.mark.parametrize(
    ("facts", "error", "said"),
    [
        ({"num_layers": 2}, UnsupportedError, "later_norm is not known"),
        ({"activation": "sigmoid_of_doom"}, UnsupportedError, "`sigmoid_of_doom`"),
        ({"rope": Rope(theta=1e4, kind="dynamic")}, UnsupportedError, "`dynamic`"),
        ({"hidden_size": 16}, TargetError, "has no embedding of its own"),
        ({"target_hidden_size": 16}, TargetError, "states 16 wide"),
        ({"vocab_size": 41}, TargetError, "a vocabulary of 41"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(
    drafter: Drafter, facts: dict[str, Any], error: type[EyasError], said: str
) -> None:
    with pytest.raises(error) as refused:
        changed(drafter, **facts)
    assert said in refused.value.message


def test_a_last_state_must_be_as_wide_as_the_drafter() -> None:
    wide = {"target_hidden_size": 20, "embedding": Ownership.OWN}
    spec = Change(conditioning=LAST, top=wide).spec()
    matrix = torch.zeros(40, 20)
    with pytest.raises(TargetError, match="takes the target's last state as it is"):
        Drafter(spec, embedding=matrix, head=matrix)


def test_heads_that_make_no_whole_group_are_refused(drafter: Drafter) -> None:
    attention = replace(drafter.spec.attention, num_kv_heads=declared(3, "test"))
    spec = replace(drafter.spec, attention=attention)
    embedding, head = drafter._shared
    with pytest.raises(UnsupportedError, match="num_heads 4 is no multiple of num_kv_heads 3"):
        Drafter(spec, embedding=embedding, head=head)


@pytest.mark.parametrize("name", ["plain", "three layers of SGLang", "latent, every flag"])
@torch.inference_mode()
def test_written_and_read_back(name: str, tmp_path: Path) -> None:
    """What a dialect writes of a drafter is loaded by name as the same drafter."""
    drafter = copy_in(random_drafter(CASES[name].spec()), torch.float32)
    state = drafter.state_dict()
    config, names = specforge.write(drafter.spec, set(state), layer_prefix="layers.0.")
    stored = {
        names[role]: TensorBytes(
            dtype="F32" if tensor.is_floating_point() else "I64",
            shape=tuple(tensor.shape),
            data=tensor.numpy().tobytes(),
        )
        for role, tensor in state.items()
    }
    checkpoint = open_checkpoint(write_checkpoint(tmp_path / "drafter", config, stored, {}))
    embedding, head = drafter._shared
    facts = SimpleNamespace(dtype=torch.float32)
    target = SimpleNamespace(embedding_VH=embedding, head_VH=head, facts=facts)
    again = trained_drafter(checkpoint, cast(Target, target))
    assert all(torch.equal(tensor, state[role]) for role, tensor in again.state_dict().items())
    ids, states = inputs(drafter)
    found, expected = (drafted(model, ids, states.float()) for model in (again, drafter))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def copy_in(drafter: Drafter, dtype: torch.dtype) -> Drafter:
    embedding, head = (matrix.to(dtype) for matrix in drafter._shared)
    copied = Drafter(drafter.spec, embedding=embedding, head=head).to(dtype)
    copied.load_state_dict(drafter.state_dict())
    return copied


def inputs(drafter: Drafter) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(5)
    width = drafter.shape.captured_width or drafter.shape.hidden
    states = torch.randn(1, 6, width, generator=chance, dtype=torch.float64)
    return torch.randint(0, 15, (1, 6), generator=chance), states


def drafted(drafter: Drafter, ids: Tensor, states: Tensor) -> Tensor:
    """The state after six pairs, and after one more that it is fed back into."""
    cache = drafter.new_cache(1, 7)
    output = drafter.step(ids, drafter.fuse(states), cache)[:, -1:]
    chosen = drafter.target_ids(drafter.logits(output).argmax(-1))
    assert chosen.shape == (1, 1)
    again = drafter.step(ids[:, :1], drafter.feedback(output), cache)
    return torch.cat([output, again], dim=1)
