"""Draft: the files of a drafter in memory, to be damaged and written again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.faults.setting import Setting
from benchmarks.faults.weights import Floats, Held, read_file, write_file
from numpy.typing import NDArray

LAYER = (
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)
NORMS = (
    "input_layernorm.weight",
    "hidden_norm.weight",
    "post_attention_layernorm.weight",
)
FUSION = "fc.weight"
HEAD = "lm_head.weight"
MAP = "d2t"
MASK = "t2d"
EMBEDDING = "embed_tokens.weight"
_IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(slots=True, kw_only=True)
class Draft:
    """A drafter's config and weights, its target's directory, and how it is launched."""

    config: dict[str, Any]
    weights: dict[str, Held]
    target: Path
    setting: Setting
    launch: list[str] = field(default_factory=list)
    beside: dict[str, dict[str, Held]] = field(default_factory=dict)  # further weight files

    @classmethod
    def read(cls, directory: Path, target: Path, setting: Setting) -> Draft:
        """The drafter of `directory`, whose weights are one file."""
        return cls(
            config=json.loads((directory / "config.json").read_text()),
            weights=read_file(directory / "model.safetensors"),
            target=target,
            setting=setting,
            launch=list(setting.launch),
        )

    def write(self, directory: Path) -> None:
        """All files, in a new `directory`."""
        directory.mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(self.config, indent=2) + "\n")
        write_file(directory / "model.safetensors", self.weights)
        for name, tensors in self.beside.items():
            write_file(directory / name, tensors)

    @property
    def sizes(self) -> dict[str, Any]:
        """The table of the config that holds the sizes."""
        nested = self.config.get("transformer_layer_config")
        return self.config if nested is None else nested

    def name(self, part: str) -> str | None:
        """The tensor that ends in `part`, whatever prefix it has here."""
        ends = [n for n in self.weights if n == part or n.endswith(f".{part}")]
        return ends[0] if ends else None

    def has(self, part: str) -> bool:
        """Whether the files hold this part."""
        return self.name(part) is not None

    def held(self, part: str) -> Held:
        """The tensor of a part that is there."""
        name = self.name(part)
        assert name is not None, part
        return self.weights[name]

    def floats(self, part: str) -> Floats:
        """The numbers of a part."""
        return self.held(part).floats()

    def put(self, part: str, numbers: NDArray[np.generic]) -> None:
        """Other numbers for a part, in the type that it has."""
        name = self.name(part)
        assert name is not None, part
        self.weights[name] = self.weights[name].like(numbers)

    def swap(self, one: str, other: str) -> None:
        """The contents of two parts of one shape, exchanged."""
        first, second = self.name(one), self.name(other)
        assert first is not None
        assert second is not None
        held = self.weights
        held[first], held[second] = held[second], held[first]

    def drop(self, parts: Iterable[str]) -> None:
        """The files without these parts."""
        names = {self.name(part) for part in parts}
        self.weights = {n: t for n, t in self.weights.items() if n not in names}

    @property
    def layer_prefix(self) -> str:
        """What the layer's tensors begin with: ``midlayer.``."""
        name = self.name(LAYER[0])
        assert name is not None
        return name.removesuffix(LAYER[0])

    def rename_layer(self, prefix: str) -> None:
        """Another beginning for the names of the layer's tensors."""
        old = self.layer_prefix
        self.weights = {
            prefix + n.removeprefix(old) if n.startswith(old) else n: t
            for n, t in self.weights.items()
        }

    @property
    def _listing(self) -> dict[str, Any]:
        return self.config if _IDS in self.config else self.config.setdefault("eagle_config", {})

    @property
    def ids(self) -> list[int]:
        """The layer ids as the config has them."""
        return list(self._listing[_IDS])

    @ids.setter
    def ids(self, ids: list[int] | None) -> None:
        if ids is None:
            del self._listing[_IDS]
        else:
            self._listing[_IDS] = ids

    def facts(self) -> dict[str, Any]:
        """The target's config."""
        read: dict[str, Any] = json.loads((self.target / "config.json").read_text())
        return read

    def target_embedding(self) -> Held:
        """The target's own embedding."""
        return read_file(self.target / "model.safetensors")["model.embed_tokens.weight"]

    @property
    def theta(self) -> float:
        """The rotary base."""
        sizes = self.sizes
        said = sizes.get("rope_theta")
        if said is None:
            said = (sizes.get("rope_parameters") or {}).get("rope_theta", 10000.0)
        return float(said)

    def set_rope(self, *, theta: float, scaling: dict[str, Any] | None) -> None:
        """The rotary embedding in both spellings, so that every reader finds the same."""
        sizes = self.sizes
        sizes["rope_theta"] = theta
        sizes["rope_scaling"] = scaling
        sizes["rope_parameters"] = {"rope_type": "default", **(scaling or {}), "rope_theta": theta}
