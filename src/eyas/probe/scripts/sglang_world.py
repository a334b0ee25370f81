"""SGLang in this process: its modules, its launch arguments, and a world of one, for any version.

Names moved between 0.4.9 and 0.5.23, so each is looked for where a version has it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import sglang_stubs
import torch
from outcome import Unknown

# Modules whose CPU branch pads q, k and v where the GPU branch raises.
_GPU_BRANCHES = (
    "sglang.srt.layers.linear",
    "sglang.srt.layers.parameter",
    "sglang.srt.layers.vocab_parallel_embedding",
)
_ROTARY = (
    "sglang.srt.layers.rotary_embedding",
    "sglang.srt.layers.rotary_embedding.factory",
)
_FROM_VLLM = "from vllm.model_executor.layers.layernorm import"
_CPU_KERNELS = ("RMSNorm", "SiluAndMul", "GemmaRMSNorm", "GeluAndMul")


def import_engine() -> str:
    """Imports SGLang with what stands in for its GPU packages; returns its version."""
    os.environ.update(
        SGLANG_USE_CPU_ENGINE="1",
        CUDA_VISIBLE_DEVICES="",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        SGLANG_DISABLE_REQUEST_LOGGING="1",
    )
    sglang_stubs.install()
    version = importlib.metadata.version("sglang")
    _name_cache()
    importlib.import_module("sglang.srt.server_args")
    with _with_amx():
        # In this order: the older ones import each other in circles.
        importlib.import_module("sglang.srt.model_loader.loader")
        importlib.import_module("sglang.srt.models.llama_eagle3")
        importlib.import_module("sglang.srt.models.registry")
    if source_says("sglang.srt.layers.rotary_embedding", "from vllm._custom_ops"):
        sglang_stubs.add("vllm")  # its rotation is imported where a layer is built
    for name in _GPU_BRANCHES:
        module = importlib.import_module(name)
        module._is_cpu = False  # type: ignore[attr-defined]
    for name, module in tuple(sys.modules.items()):
        if name.startswith("sglang.") and "_is_cpu_amx_available" in vars(module):
            module._is_cpu_amx_available = False  # type: ignore[attr-defined]
    for name in _ROTARY:
        module = optional(name, "__name__") and sys.modules[name]
        if module and hasattr(module, "get_rope_cpu"):  # knows one kind; a GPU's knows them all
            module.get_rope_cpu = lambda *given, real=module.get_rope: real(*given[:8])
        if module and hasattr(module, "DeepseekScalingRotaryEmbedding"):
            _build_on_cpu(module.DeepseekScalingRotaryEmbedding)
    # The engine empties and waits for a GPU's memory between steps; there is none.
    torch.cuda.empty_cache = torch.cuda.synchronize = lambda *_, **__: None
    return version


def _name_cache() -> None:
    """SGLang up to 0.5.3 imports a name that Triton no longer has, and calls it on a GPU alone."""
    cache = importlib.import_module("triton.runtime.cache")
    for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
        if not hasattr(cache, name):
            setattr(cache, name, lambda: os.devnull)


@contextlib.contextmanager
def _with_amx() -> Iterator[None]:
    """SGLang up to 0.5.7 imports its norms from vLLM where a CPU has no AMX: let it have."""
    tools = importlib.import_module("sglang.srt.utils")
    real = getattr(tools, "cpu_has_amx_support", None)
    if real is None or not source_says("sglang.srt.layers.layernorm", _FROM_VLLM):
        yield
        return
    tools.cpu_has_amx_support = lambda: True
    try:
        yield
    finally:
        tools.cpu_has_amx_support = real


def _build_on_cpu(kind: Any) -> None:
    """Lets a class be built on the CPU whose default device is the GPU."""
    real = kind.__init__
    if "device" in inspect.signature(real).parameters:
        kind.__init__ = lambda self, *a, **k: real(self, *a, **{"device": "cpu", **k})


def optional(module: str, name: str) -> Any:
    """Attribute `name` of `module`, None where this version has no such module or attribute."""
    try:
        found: ModuleType = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            return None
        raise
    return getattr(found, name, None)


def server_args(target: str, draft: str, launch: dict[str, str]) -> Any:
    """The engine's own launch arguments, checked and completed as its server does it."""
    from sglang.srt.server_args import prepare_server_args

    line = ["--model-path", target, "--speculative-draft-model-path", draft]
    line += ["--device", "cpu", "--dtype", "float32", "--attention-backend", "triton"]
    line += ["--skip-tokenizer-init", "--disable-cuda-graph"]
    given = {"speculative_algorithm": "EAGLE3", **launch}
    for key, value in given.items():
        if key.isupper():
            os.environ[key] = value
        elif key != "disable_cuda_graph":  # a graph needs a GPU; what it resets is a fact apart
            line += ["--" + key.replace("_", "-"), value]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            arguments = prepare_server_args(line)
    except SystemExit as end:  # how argparse refuses a line
        last = said.getvalue().strip().splitlines()[-1:]
        raise ValueError(" ".join(last)) from end
    publish(arguments)
    return arguments


def publish(arguments: Any) -> None:
    """Makes `arguments` those of the process."""
    current = optional("sglang.srt.runtime_context", "publish")
    if current is not None:
        ranks = optional("sglang.srt.runtime_context", "SpawnRanks")
        current(arguments, role="scheduler", **({} if ranks is None else {"ranks": ranks(0)}))
        return
    known = optional("sglang.srt.server_args", "set_global_server_args_for_scheduler")
    if known is not None:
        known(arguments)
        return
    table = optional("sglang.srt.managers.schedule_batch", "global_server_args_dict")
    keys = optional("sglang.srt.managers.schedule_batch", "GLOBAL_SERVER_ARGS_KEYS")
    table.update({key: getattr(arguments, key) for key in keys})


class World:
    """A gloo world of one, made at the first drafter and kept."""

    def __init__(self) -> None:
        self._joined = False

    def join(self, arguments: Any, config: Any) -> None:
        """Enters the world."""
        if self._joined:
            return
        self._joined = True
        from sglang.srt.distributed import parallel_state as state

        store = Path(tempfile.mkdtemp(prefix="world")) / "store"
        state.init_distributed_environment(
            world_size=1,
            rank=0,
            local_rank=0,
            distributed_init_method=f"file://{store}",
            backend="gloo",
        )
        state.initialize_model_parallel()
        attention = optional("sglang.srt.layers.dp_attention", "initialize_dp_attention")
        if attention is not None:
            given = {
                "server_args": arguments,
                "model_config": config,
                "enable_dp_attention": False,
                "tp_rank": 0,
                "tp_size": 1,
                "dp_size": 1,
                "moe_dense_tp_size": None,
                "pp_size": 1,
            }
            wanted = inspect.signature(attention).parameters
            attention(**{key: value for key, value in given.items() if key in wanted})


def model_config(arguments: Any, path: str, *, draft: bool) -> Any:
    """The engine's reading of a config.json."""
    from sglang.srt.configs.model_config import ModelConfig

    given: dict[str, Any] = {"model_path": path, "is_draft_model": draft}
    return ModelConfig.from_server_args(arguments, **given)


def load_config(arguments: Any) -> Any:
    """How weights are read: as the server would."""
    from sglang.srt.configs.load_config import LoadConfig

    return LoadConfig(load_format=arguments.load_format)


def load(config: Any, how: Any) -> Any:
    """The model, built and loaded by the engine's own loader."""
    from sglang.srt.configs.device_config import DeviceConfig
    from sglang.srt.model_loader import get_model_loader

    getter = get_model_loader
    wanted = inspect.signature(getter).parameters
    loader = getter(how, config) if len(wanted) > 1 else getter(how)
    return loader.load_model(model_config=config, device_config=DeviceConfig("cpu"))


def class_of(config: Any) -> Any:
    """The class that the engine's registry names for a config.

    Raises Unknown for one that is not in it because its file could not be imported here.
    """
    from sglang.srt.model_loader.utils import get_model_architecture

    try:
        return get_model_architecture(config)[0]
    except ValueError:
        names = config.hf_config.architectures or []
        folder = Path(importlib.import_module("sglang.srt.models").__path__[0])
        for file in folder.glob("*.py"):
            text = file.read_text(encoding="utf-8")
            if any(f"class {name}(" in text for name in names):
                raise Unknown(f"{file.name}, which has {names[0]}, cannot be imported") from None
        raise


def use_native_kernels(model: torch.nn.Module) -> None:
    """Lets layers compute with torch where they would call a GPU kernel."""
    for module in model.modules():
        native = getattr(module, "forward_native", None)
        if native is not None and type(module).__name__ in _CPU_KERNELS:
            module._forward_method = native  # type: ignore[assignment]


def forget_rotations() -> None:
    """Empties the cache of rotary embeddings: a target without memory leaves such ones in it."""
    for name in _ROTARY:
        kept = optional(name, "_ROPE_DICT")
        if kept is not None:
            kept.clear()


def source_says(module: str, text: str) -> bool:
    """Whether the source of `module` holds `text`; False where there is no such module."""
    for finder in sys.path:
        path = Path(finder or ".").joinpath(*module.split(".")).with_suffix(".py")
        if path.is_file():
            return text in path.read_text(encoding="utf-8")
    return False
