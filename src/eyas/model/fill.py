"""What stands in for the parameters that no tensor fills."""

from __future__ import annotations

import hashlib
import math
from enum import StrEnum

import torch
from torch import Tensor

from eyas.model.weights import RoleTensors
from eyas.spec import Initialisation

_NORMAL_STD = 0.02


class Fill(StrEnum):
    """What stands in for uninitialised memory, whose contents nobody can know.

    A server's memory is one of many, so a result is given as the range over these. It is no bound:
    memory full of large numbers drowns all that was trained, and nothing is accepted.
    """

    ZEROS = "zeros"
    NORMAL = "normal"  # N(0, 0.02), a common initialisation
    SHUFFLED = "shuffled"  # the trained values in a random order: right in scale, void of meaning


class Filler:
    """Values for unfilled parameters: the same for the same role, shape and seed."""

    def __init__(self, trained: RoleTensors, fill: Fill, seed: int) -> None:
        self._trained = trained
        self._fill = fill
        self._seed = seed

    def values(
        self, role: str, shape: tuple[int, ...], initialisation: Initialisation, fan_in: int
    ) -> Tensor:
        """What `role` holds where nothing fills it.

        `fill` decides for uninitialised memory alone; ones, zeros and the random numbers of
        torch's own linear layer, U(-1, 1) / sqrt(fan_in), are what they are under every fill.
        """
        # each role has a generator of its own, so that one more lost tensor changes no other
        digest = hashlib.sha256(f"{self._seed} {role}".encode()).digest()
        random = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        if initialisation is Initialisation.ONES:
            return torch.ones(shape)
        if initialisation is Initialisation.RANDOM:
            return (torch.rand(shape, generator=random) * 2 - 1) / math.sqrt(fan_in)
        if initialisation is Initialisation.ZEROS or self._fill is Fill.ZEROS:
            return torch.zeros(shape)
        if self._fill is Fill.SHUFFLED and self._trained.tensor(role) is not None:
            return self._shuffled(role, shape, random)
        # where nothing was trained no scale is known either
        return torch.randn(shape, generator=random) * _NORMAL_STD

    def _shuffled(self, role: str, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        values = self._trained.read(role).flatten()
        wanted = torch.Size(shape).numel()
        order = torch.randperm(len(values), generator=random)
        if wanted > len(values):  # a config that asks for more than was trained
            order = torch.randint(len(values), (wanted,), generator=random)
        return values[order[:wanted]].reshape(shape)
