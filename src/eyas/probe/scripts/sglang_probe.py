"""What SGLang really makes of drafters: its own config, classes, weight iterator and loader.

    python sglang_probe.py JOBS.json OUT.jsonl

Run by the Python that SGLang is installed for; needs nothing of eyas. JOBS.json is a list of jobs:
``draft`` (a directory), ``target`` (a directory with a config.json), ``location`` (the drafter as
the user typed it: transformers before 5 guess a model type from a path) and ``launch`` (option to
value). One JSON object is appended to OUT.jsonl for each. No weight of the target is read, and none
of the drafter's numbers: what is loaded is a coded copy (coded.py).
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sglang_stubs
import sglang_target
import sglang_world
import torch
from coded import (
    Codes,
    Segment,
    Tensor,
    coded_copy,
    described,
    left_by_construction,
    segments_of,
    spoil,
)
from outcome import Lines, Record, answer_jobs, outcome_of, stage
from torch.overrides import TorchFunctionMode

_SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "draft_vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
    "hidden_act",
)


# What the engine would find where it is installed whole: the probe's limit, not its outcome.
_NOT_HERE = ("ModuleNotFoundError", "ImportError")


class Reached(Exception):  # noqa: N818 - a place in the engine's code, not a fault
    """The drafter's first layer is called: what comes before it did not raise."""


class Sums(TorchFunctionMode):
    """Remembers which tensor of the checkpoint a sum was made from."""

    def __init__(self) -> None:
        super().__init__()
        self._delivered: dict[int, tuple[str, torch.Tensor]] = {}
        self._sums: list[tuple[torch.Tensor, str]] = []

    def deliver(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterator[Any]:
        """`weights`, each remembered by name."""
        for name, tensor in weights:
            self._delivered[id(tensor)] = (name, tensor)
            yield name, tensor

    def source_of(self, total: object) -> str | None:
        """The name of the tensor that `total` is a sum with."""
        return next((name for made, name in self._sums if made is total), None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What torch calls for each of its functions."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            for operand in args[:2]:
                if id(operand) in self._delivered and result is not operand:
                    self._sums.append((result, self._delivered[id(operand)][0]))
        return result


class Probe:
    """One drafter on its way through the engine."""

    def __init__(self, engine: Engine, job: dict[str, Any], folder: Path) -> None:
        self.engine, self.job, self.folder = engine, job, folder
        self.architecture: str | None = None
        self.facts: dict[str, Any] = {}
        self.codes = Codes()
        self.held: dict[str, tuple[tuple[int, ...], list[Segment], str]] = {}
        self.consumed: dict[str, list[Segment]] = {}
        self.overwritten: dict[str, str] = {}
        self.log: list[str] = []

    def run(self) -> None:
        """To the drafter's first layer, or Stopped."""
        copy = self.folder / (Path(self.job["location"]).name or "drafter")
        self.codes = coded_copy(Path(self.job["draft"]), copy)
        launch = self.job["launch"]
        with stage("config"):
            arguments = sglang_world.server_args(self.job["target"], str(copy), launch)
            target_config = sglang_world.model_config(arguments, self.job["target"], draft=False)
            config = sglang_world.model_config(arguments, str(copy), draft=True)
        self._facts_of_config(config.hf_config)
        self.engine.world.join(arguments, config)
        drafter = self._loaded(arguments, config)
        self._facts_of_model(drafter)
        target = self.engine.target(self.job["target"], target_config, arguments)
        with stage("joining the target"):
            self.facts |= sglang_target.captured(arguments, target_config, target, config)
        with stage("joining the target"), sglang_target.shared(target) as matrices:
            try:
                sglang_target.join(arguments, target_config, target, drafter)
            finally:
                self.overwritten = {
                    name: what
                    for name, parameter in drafter.named_parameters()
                    for what, theirs in matrices.items()
                    if parameter is theirs
                }
        with stage("first request"):
            self._request(drafter, target_config)

    def _loaded(self, arguments: Any, config: Any) -> Any:
        """The drafter, built and loaded; what each parameter held in between is `held`."""
        with stage("construct"):
            kind = sglang_world.class_of(config)
            self.architecture = kind.__name__
        real = kind.load_weights
        self.engine.lines.lines = []  # what was said of the launch says nothing of weights

        def watched(model: Any, weights: Iterable[tuple[str, torch.Tensor]]) -> Any:
            torch.use_deterministic_algorithms(False)
            with stage("load"):
                return self._watch(model, weights, real)

        kind.load_weights = watched
        # In this mode torch.empty is filled with NaN: memory is told from zeros and ones.
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            with sglang_stubs.forbid(), stage("construct"):
                return sglang_world.load(config, sglang_world.load_config(arguments))
        finally:
            torch.use_deterministic_algorithms(False)
            kind.load_weights = real
            self.log = self.engine.lines.lines

    def _watch(self, model: Any, weights: Iterable[tuple[str, torch.Tensor]], real: Any) -> Any:
        parameters = dict(model.named_parameters())
        left = {name: left_by_construction(p.data) for name, p in parameters.items()}
        for parameter in parameters.values():
            spoil(parameter.data)
        sums = Sums()
        try:
            with sums:
                return real(model, sums.deliver(weights))
        finally:
            for name, parameter in parameters.items():
                segments = segments_of(parameter.data, self.codes)
                self.held[name] = (tuple(parameter.shape), segments, left[name])
            source = sums.source_of(getattr(model, "hot_token_id", None))
            if source is not None:
                self.consumed["hot_token_id"] = [self._whole(source)]

    def _whole(self, name: str) -> Segment:
        """All of the tensor `name`, of the last file that has one."""
        found: Tensor = max((t for t in self.codes.tensors if t.name == name), key=lambda t: t.file)
        return Segment(0, found.shape[0] if found.shape else 1, found, 0, 0, 0)

    def _facts_of_config(self, draft: Any) -> None:
        plain = (int, float, str, bool)
        values = {name: getattr(draft, name, None) for name in _SIZES}
        self.facts |= {k: v if isinstance(v, plain) else None for k, v in values.items()}

    def _facts_of_model(self, drafter: Any) -> None:
        model = getattr(drafter, "model", None)
        self.facts["fc_norm"] = getattr(model, "fc_norm", None) is not None
        self.facts["norm_before_fc"] = getattr(model, "input_norm", None) is not None
        self.facts["norm_output"] = bool(getattr(model, "norm_output", False))
        self.facts["head_from_target"] = bool(getattr(drafter, "load_lm_head_from_target", False))
        layer = _first_layer(drafter)
        attention = getattr(layer, "self_attn", None)
        rotary = getattr(attention, "rotary_emb", None)
        base = getattr(rotary, "base", None)
        self.facts["rope_theta"] = float(base) if isinstance(base, (int, float)) else None
        self.facts["rope_class"] = None if rotary is None else type(rotary).__name__
        window = getattr(getattr(attention, "attn", None), "sliding_window_size", None)
        self.facts["window"] = window if isinstance(window, int) and window > 0 else None

    def _request(self, drafter: Any, target_config: Any) -> None:
        """The drafter's own code for two tokens, up to its first layer."""
        layer, model = _first_layer(drafter), getattr(drafter, "model", None)
        count = self.facts["states"]
        if layer is None or model is None or count is None:
            return
        sglang_world.use_native_kernels(drafter)
        calls: list[str] = []
        fc = getattr(model, "fc", None)
        if fc is not None:
            fc.register_forward_hook(lambda *_: calls.append("fc"))
        layer.forward = _reach
        states = torch.zeros(2, count * target_config.hidden_size)
        batch = SimpleNamespace(
            spec_info=SimpleNamespace(hidden_states=states),
            mm_input_embeds=None,
            mrope_positions=torch.zeros(3, 2, dtype=torch.long),
            contains_mm_inputs=lambda: False,
            forward_mode=SimpleNamespace(
                is_extend=lambda: False,
                is_draft_extend_v2=lambda: False,
                is_draft_extend=lambda **_: False,
            ),
        )
        tokens, positions = torch.zeros(2, dtype=torch.long), torch.arange(2)
        with contextlib.suppress(Reached), torch.no_grad():
            model(tokens, positions, batch)
        self.facts["fc_called"] = bool(calls)


def _reach(*_: Any, **__: Any) -> Any:
    raise Reached


def _first_layer(drafter: Any) -> Any:
    model = getattr(drafter, "model", None)
    layers = list(getattr(model, "layers", ()))
    return layers[0] if layers else getattr(model, "midlayer", None)


class Engine:
    """SGLang in this process: imported once, with a world of one."""

    def __init__(self) -> None:
        self.version = sglang_world.import_engine()
        self.world = sglang_world.World()
        self.lines = Lines()
        self._targets: dict[str, Any] = {}
        logging.getLogger("sglang").addHandler(self.lines)

    def target(self, path: str, config: Any, arguments: Any) -> Any:
        """The target of the directory `path`, built once."""
        key = path + (Path(path) / "config.json").read_text(encoding="utf-8")
        if key not in self._targets:
            self._targets[key] = sglang_target.built(config, arguments)
        return self._targets[key]

    def record(self, job: dict[str, Any], folder: Path) -> dict[str, Any]:
        """The record of one drafter."""
        probe = Probe(self, job, folder)
        outcome = outcome_of(probe.run)
        error = outcome["error"]
        if error is not None:
            error["message"] = error["message"].replace(f"{folder}/", "")  # another each time
            if error["type"] in _NOT_HERE:
                outcome |= {"status": "unknown", "stage": None}
        return {
            "engine": "sglang",
            "version": self.version,
            "runner": None,
            **outcome,
            "architecture": probe.architecture,
            "facts": probe.facts,
            **described(probe.held, probe.consumed, probe.codes),
            "overwritten": probe.overwritten,
            "log": [line.replace(f"{folder}/", "") for line in probe.log],
        }


def _engine() -> Record:
    return Engine().record


if __name__ == "__main__":
    sys.exit(answer_jobs(sys.argv[1:], _engine))
