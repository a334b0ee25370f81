"""Noise is told from what training left."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eyas.checkpoint import open_checkpoint
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import CauseId
from eyas.diagnose.contents import content_of, contents, strongest_direction
from eyas.diagnose.reading import declared

FC = "fc.weight"


@pytest.mark.parametrize("shape", [(64, 64), (192, 1152), (576, 576), (576, 2048)])
def test_noise_stays_at_its_edge_whatever_it_is_made_of(shape: tuple[int, int]) -> None:
    random = torch.Generator().manual_seed(5)
    for noise in (torch.randn(shape, generator=random), torch.rand(shape, generator=random) - 0.5):
        assert 0.85 < strongest_direction(noise) < 1.0 + min(shape) ** (-2 / 3)


def test_the_singular_value_is_that_of_torch() -> None:
    random = torch.Generator().manual_seed(6)
    matrix = torch.randn(80, 100, generator=random)
    matrix += 2 * torch.outer(torch.randn(80, generator=random), torch.randn(100, generator=random))
    spread = matrix.square().mean().sqrt()
    wanted = torch.linalg.svdvals(matrix)[0] / (spread * (80**0.5 + 100**0.5))
    assert strongest_direction(matrix) == pytest.approx(float(wanted), rel=1e-4)


def test_the_drafter_trained_here_is_sound_and_each_damage_is_named(
    bench: Bench, trained_here: Path
) -> None:
    variant = declared(open_checkpoint(trained_here), bench.target).variant
    roles = frozenset(variant.state)
    assert contents(variant, bench.target, roles) == ()
    fc = variant.state[FC]
    shuffled = fc.flatten()[torch.randperm(fc.numel(), generator=torch.Generator().manual_seed(7))]
    one_nan = fc.clone()
    one_nan[0, 0] = float("nan")
    damages = {
        CauseId.WEIGHTS_ZERO: fc * 0,
        CauseId.WEIGHTS_NAN: one_nan,
        CauseId.WEIGHTS_AT_INIT: shuffled.view(fc.shape),
    }
    for cause, held in damages.items():
        found = contents(variant.with_state({FC: held}), bench.target, roles)
        assert [(content.cause, content.role) for content in found] == [(cause, FC)]


@pytest.mark.parametrize(
    ("spread", "noise"), [(0.02, True), ((1 / (3 * 48)) ** 0.5, True), (0.05, False)]
)
def test_a_small_matrix_is_noise_only_with_the_spread_of_a_start(
    spread: float, noise: bool
) -> None:
    held = torch.randn(64, 48, generator=torch.Generator().manual_seed(8))
    found = content_of("layers.0.mlp.up_proj.weight", held * spread)
    assert (found is not None) is noise
