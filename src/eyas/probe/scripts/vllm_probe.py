"""What vLLM really makes of drafters: its own config, classes, weight iterator and loader.

    python vllm_probe.py JOBS.json OUT.jsonl

Run by the Python that vLLM is installed for; needs nothing of eyas. JOBS.json is a list of jobs:
``draft`` (a directory), ``target`` (a directory with a config.json), ``location`` (the drafter as
the user typed it: vLLM guesses a method from a path), ``launch`` (option to value) and ``runner``
(v1 or v2). One JSON object is appended to OUT.jsonl for each, in order and flushed, so that a
reader knows how far a child came that was ended. No weight of the target is read, and none of the
drafter's numbers: what is loaded is a coded copy (coded.py).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Before vLLM is imported: nothing leaves this machine, and no other process is started.
os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    DO_NOT_TRACK="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_TARGET_DEVICE="cpu",
    CUDA_VISIBLE_DEVICES="",
    VLLM_USE_V2_MODEL_RUNNER="0",  # the V2 runner wants a GPU; what it decides is asked of it
)

import torch
from coded import (
    Codes,
    Segment,
    coded_copy,
    described,
    left_by_construction,
    segments_of,
    spoil,
)
from outcome import Stopped, Unknown, answer_jobs, outcome_of, stage
from vllm_target import Target, leave_attention_out, multiply_plainly

_STEPS = 3  # draft tokens: no fact that is looked at depends on it
_CAPTURING = ("eagle3", "dflash", "dspark")  # the methods that are given captured states
_HERE = Path(__file__).parent
_SAID_OF_WEIGHTS = ("vllm.model_executor.models", "vllm.model_executor.model_loader")


class Warnings(logging.Handler):
    """Collects the warnings of what builds and loads models."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        if record.name.startswith(_SAID_OF_WEIGHTS):
            self.lines.append(record.getMessage()[:500])


@contextmanager
def asked(name: str) -> Iterator[None]:
    """What raises inside is the engine's doing, at stage `name`, unless it is this script's own."""
    with stage(name):
        try:
            yield
        except (Stopped, Unknown, MemoryError):
            raise
        except Exception as error:
            if _is_ours(error):
                raise Unknown(f"{type(error).__name__} while asking: {error}") from error
            raise


def _is_ours(error: BaseException) -> bool:
    """Whether `error` is the probe's, as on a version whose insides it does not know."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    here = trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == _HERE
    owner = type(error.obj) if isinstance(error, AttributeError) else None
    return here or owner is SimpleNamespace or getattr(owner, "__module__", "") == "vllm_target"


class Engine:
    """vLLM in this process: imported once, with a world of one."""

    def __init__(self) -> None:
        import vllm
        from vllm import logger

        self.version = str(vllm.__version__).partition("+")[0]
        self._once = [getattr(logger, name) for name in dir(logger) if name.endswith("_once")]
        self._joined = False
        self.lines = Warnings()
        logging.getLogger("vllm").addHandler(self.lines)

    def record(self, job: dict[str, Any], folder: Path) -> dict[str, Any]:
        """The record of one drafter."""
        self.lines.lines = []
        for once in self._once:  # what vLLM says once a process it shall say for every drafter
            getattr(once, "cache_clear", lambda: None)()
        probe = Probe(self, job, folder)
        outcome = outcome_of(probe.run)
        return {
            "engine": "vllm",
            "version": self.version,
            "runner": probe.runner,
            **outcome,
            "architecture": probe.architecture,
            "facts": probe.facts,
            **described(probe.held, probe.consumed, probe.codes),
            "overwritten": probe.overwritten,
            "log": self.lines.lines,
        }

    def join_world(self, config: Any) -> None:
        """A gloo world of one, made with the first config and kept."""
        from vllm.config import set_current_vllm_config
        from vllm.distributed import parallel_state as state

        if self._joined:
            return
        file = Path(tempfile.mkdtemp(prefix="world")) / "store"
        with set_current_vllm_config(config):
            state.init_distributed_environment(1, 0, f"file://{file}", 0, "gloo")
            state.initialize_model_parallel(1, 1)
        self._joined = True


class Probe:
    """One drafter on its way through the engine."""

    def __init__(self, engine: Engine, job: dict[str, Any], folder: Path) -> None:
        self.engine, self.job, self.folder = engine, job, folder
        self.runner: str = job["runner"]
        self.architecture: str | None = None
        self.facts: dict[str, Any] = {}
        self.codes = Codes()
        self.held: dict[str, tuple[tuple[int, ...], list[Segment], str]] = {}
        self.consumed: dict[str, list[Segment]] = {}
        self.overwritten: dict[str, str] = {}

    def run(self) -> None:
        """To the end of the first request, or Stopped."""
        # The copy keeps the path's last parts, in which vLLM looks for a method's name.
        parts = [part for part in Path(self.job["location"]).parts if part not in ("/", "..", ".")]
        copy = self.folder.joinpath(*parts[-3:] or ["drafter"])
        self.codes = coded_copy(Path(self.job["draft"]), copy)
        with asked("config"):
            config = self._config(copy)
        speculative = config.speculative_config
        if self.runner == "v2":
            lacking = config._get_v2_model_runner_unsupported_features()
            self.facts["v2_lacks"] = lacking
            if lacking:  # vLLM falls back by itself
                self.runner = "v1"
        self._facts_of_config(speculative)
        self.engine.join_world(config)
        drafter = self._built(config)
        self._load(config, drafter)
        target = self._target(config)
        with asked("joining the target"):
            self._join(config, drafter, target)
        with asked("first request"):
            self._request(config, drafter, target)

    def _config(self, copy: Path) -> Any:
        """The engine's config by its own parser of arguments."""
        from vllm.engine.arg_utils import EngineArgs
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        launch = self.job["launch"]
        speculative: dict[str, Any] = {"model": str(copy), "num_speculative_tokens": _STEPS}
        if launch.get("method", "auto") != "auto":
            speculative["method"] = launch["method"]
        if "parallel_drafting" in launch:
            speculative["parallel_drafting"] = launch["parallel_drafting"] == "true"
        line = ["--model", self.job["target"], "--speculative-config", json.dumps(speculative)]
        line += ["--dtype", "float32", "--enforce-eager", "--skip-tokenizer-init"]
        if "max_model_len" in launch:
            line += ["--max-model-len", launch["max_model_len"]]
        parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
        return EngineArgs.from_cli_args(parser.parse_args(line)).create_engine_config()

    def _built(self, config: Any) -> Any:
        """The drafter's class, its parameters as construction leaves them."""
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader.utils import (
            get_model_architecture,
            initialize_model,
        )
        from vllm.utils.torch_utils import set_default_torch_dtype

        model_config = config.speculative_config.draft_model_config
        with asked("construct"):
            _require_mask_token(config.speculative_config)
            self.architecture = get_model_architecture(model_config)[0].__name__
            # In this mode torch.empty is filled with NaN: memory is told from zeros and ones.
            torch.use_deterministic_algorithms(True, warn_only=True)
            try:
                with set_default_torch_dtype(torch.float32), set_current_vllm_config(config):
                    return initialize_model(vllm_config=config, model_config=model_config)
            finally:
                torch.use_deterministic_algorithms(False)

    def _load(self, config: Any, drafter: Any) -> None:
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader import get_model_loader

        parameters = dict(drafter.named_parameters())
        left = {name: left_by_construction(p.data) for name, p in parameters.items()}
        for parameter in parameters.values():
            spoil(parameter.data)
        model_config = config.speculative_config.draft_model_config
        try:
            with asked("load"), set_current_vllm_config(config):
                get_model_loader(config.load_config).load_weights(drafter, model_config)
        finally:
            for name, parameter in parameters.items():
                segments = segments_of(parameter.data, self.codes)
                self.held[name] = (tuple(parameter.shape), segments, left[name])
            for name, buffer in drafter.named_buffers():
                if "mask" in name and buffer.numel():
                    self.consumed[name] = segments_of(buffer.data.reshape(-1), self.codes)

    def _facts_of_config(self, speculative: Any) -> None:
        draft = speculative.draft_model_config.hf_config
        names = (
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
        plain = (int, float, str, bool)
        values = {name: getattr(draft, name, None) for name in names}
        self.facts |= {k: v if isinstance(v, plain) else None for k, v in values.items()}
        self.facts["method"] = speculative.method
        self.facts["parallel_drafting"] = bool(speculative.parallel_drafting)

    def _facts_of_model(self, drafter: Any) -> None:
        model = drafter.model
        for name in ("use_aux_hidden_state", "norm_before_fc", "norm_output"):
            value = getattr(model, name, None)
            self.facts[name] = None if value is None else bool(value)
        self.facts["fc_norm"] = getattr(model, "fc_norm", None) is not None
        layers = list(getattr(model, "layers", ()))
        if not layers:
            return
        normed = getattr(layers[0], "_residual_norm", None)
        if normed is not None:
            before = normed.__name__ == "_norm_before_residual"
            self.facts["norm_before_residual"] = before
        rotary = getattr(getattr(layers[0], "self_attn", None), "rotary_emb", None)
        base = getattr(rotary, "base", None)
        self.facts["rope_theta"] = float(base) if base is not None else None
        self.facts["rope_class"] = None if rotary is None else type(rotary).__name__
        limit = getattr(rotary, "max_position_embeddings", None)
        self.facts["rope_positions"] = limit if isinstance(limit, int) else None

    def _target(self, config: Any) -> Any:
        """The target's class without its layers: what it captures is asked of its own methods."""
        with asked("config"):
            from vllm.model_executor.model_loader.utils import get_model_architecture

            return Target.of(get_model_architecture(config.model_config)[0], config)

    def _join(self, config: Any, drafter: Any, target: Any) -> None:
        self._facts_of_model(drafter)
        speculative = config.speculative_config
        if speculative.method == "draft_model":  # shares nothing (v1/spec_decode/draft_model.py)
            self.facts["captures"], self.facts["boundaries"] = False, None
            return
        join = _join_in_v2 if self.runner == "v2" else _join_in_v1
        captures = join(config, drafter, target)
        layers = target.decoder.num_layers
        asked_for = [int(i) for i in target.decoder.aux_hidden_state_layers]
        self.facts["captures"] = captures
        self.facts["layer_ids"] = asked_for if captures else None
        self.facts["boundaries"] = [i for i in asked_for if 0 <= i <= layers] if captures else None
        for name, parameter in drafter.named_parameters():
            for what, theirs in target.shared.items():
                if parameter is theirs:
                    self.overwritten[name] = what

    def _request(self, config: Any, drafter: Any, target: Any) -> None:
        """The drafter's own arithmetic for two tokens, attention itself left out."""
        from vllm.config import set_current_vllm_config
        from vllm.forward_context import set_forward_context

        speculative = config.speculative_config
        count = len(self.facts["boundaries"]) if self.facts["captures"] else 1
        width = config.model_config.get_hidden_size()
        states = torch.zeros(2, count * width)
        multiply_plainly(drafter)
        with set_current_vllm_config(config), set_forward_context(None, config):
            if speculative.method in ("eagle3", "dflash"):
                states = drafter.combine_hidden_states(states)
            if speculative.method == "dflash":
                return
            leave_attention_out(drafter)
            tokens, positions = torch.zeros(2, dtype=torch.long), torch.arange(2)
            if speculative.method == "draft_model":
                drafter(input_ids=tokens, positions=positions, inputs_embeds=None)
                return
            last, _ = drafter(tokens, positions, states)
            drafter.compute_logits(last)


def _join_in_v1(config: Any, drafter: Any, target: Any) -> bool:
    """Shares matrices and sets captured layers as the V1 runner does; whether it captures any."""
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    speculative = config.speculative_config
    captures = speculative.method in _CAPTURING
    if speculative.method == "eagle3":
        wants = SpecDecodeBaseProposer._get_eagle3_use_aux_hidden_state_from_config
        captures = bool(wants(speculative))
    proposer = SimpleNamespace(model=drafter, vllm_config=config, use_local_argmax_reduction=False)
    inner = target.get_language_model() if hasattr(target, "get_language_model") else target
    SpecDecodeBaseProposer._maybe_share_embeddings(proposer, inner)
    SpecDecodeBaseProposer._maybe_share_lm_head(proposer, inner)
    runner = SimpleNamespace(
        use_aux_hidden_state_outputs=captures,
        model=target,
        get_model=lambda: target,
        speculative_config=speculative,
    )
    ids = GPUModelRunner._get_eagle3_aux_layers_from_config
    runner._get_eagle3_aux_layers_from_config = lambda: ids(runner)
    GPUModelRunner._setup_eagle3_aux_hidden_state_outputs(runner)
    return captures


def _join_in_v2(config: Any, drafter: Any, target: Any) -> bool:
    """The same as the V2 runner does."""
    from vllm.v1.worker.gpu.spec_decode.eagle import eagle3_utils, utils

    speculative = config.speculative_config
    captures = speculative.method in _CAPTURING
    if captures:
        eagle3_utils.set_eagle3_aux_hidden_state_layers(target, speculative)
    real = utils.get_model
    utils.get_model = lambda **_: drafter
    try:
        utils.load_eagle_model(target, config)
    finally:
        utils.get_model = real
    return captures


def _require_mask_token(speculative: Any) -> None:
    """What the drafter's runner asks of the config before it builds a model, by its own code."""
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

    if speculative.parallel_drafting:
        require = SpecDecodeBaseProposer._init_parallel_drafting_params
        require(
            SimpleNamespace(
                draft_model_config=speculative.draft_model_config,
                pass_hidden_states_to_model=False,
            )
        )


if __name__ == "__main__":
    sys.exit(answer_jobs(sys.argv[1:], lambda: Engine().record))
