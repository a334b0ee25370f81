"""SGLang: the plain wheel with CUDA; elsewhere its Python files beside what they import.

There is no wheel of its kernels for a CPU, and its requirements name CUDA builds throughout. The
files alone parse, build and load a drafter; `scripts/sglang_stubs.py` stands in for the kernels.
Without CUDA every version shares one set of packages and has its own SGLang and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from email.parser import HeaderParser

from eyas.errors import ProbeError
from eyas.probe.recipes.recipe import Bench, Recipe, Step

_SHARED = "sglang-shared"
_TORCH = "torch==2.13.0"
# What SGLang imports where its models, its loader and its launch arguments are.
_PACKAGES = (
    "triton==3.9.0",
    "aiohttp==3.14.5",
    "anthropic==2.15.0",
    "cloudpickle==3.1.3",
    "dill==0.4.1",
    "easydict==1.14",
    "einops==0.8.2",
    "fastapi==0.165.0",
    "gguf==0.19.0",
    "interegular==0.3.3",
    "ipython==9.18.1",
    "loguru==0.7.3",
    "msgspec==0.23.0",
    "numpy==2.4.6",
    "openai==2.8.0",
    "orjson==3.13.0",
    "packaging==26.4",
    "partial-json-parser==0.2.1.1.post7",
    "pillow==13.0.0",
    "prometheus-client==0.26.0",
    "psutil==7.2.2",
    "pybase64==1.5.1",
    "pydantic==2.14.4",
    "python-multipart==0.0.34",
    "pyyaml==6.0.4",
    "pyzmq==27.3.0",
    "regex==2026.11.19",
    "requests==2.34.2",
    "safetensors==0.8.0",
    "scipy==1.17.1",
    "sentencepiece==0.2.3",
    "setproctitle==1.3.8",
    "tiktoken==0.14.0",
    "tqdm==4.70.1",
    "uvicorn==0.54.0",
    "uvloop==0.23.0",
)
_QUANTISED = "compressed-tensors==0.18.0"  # imported only, and it would bring a transformers
# What transformers lets vary, by the version of SGLang whose transformers it is for.
_TOKENIZERS = {
    "0.5.8": ("tokenizers==0.22.2", "huggingface-hub==0.36.2"),
    "0.5.11": ("tokenizers==0.22.2", "huggingface-hub==1.33.0"),
    "0.5.23": ("tokenizers==0.23.3", "huggingface-hub==2.4.0"),
}
_CHECK = """
import importlib.metadata, importlib.util
import torch, transformers, triton
assert importlib.util.find_spec("sglang") is not None
print(importlib.metadata.version("sglang"), transformers.__version__)
"""


def _steps(version: str, cuda: bool) -> tuple[Step, ...]:
    venv = Step(title="making a virtual environment", work=lambda bench: bench.make_venv())
    if cuda:
        wheel = Step(
            title=f"installing sglang {version} and what it needs",
            work=lambda bench: bench.pip("install", f"sglang=={version}"),
        )
        return venv, wheel
    return (
        venv,
        _shared_step("making the environment that every version shares", _make_shared),
        _shared_step(f"installing {_TORCH} in it", lambda bench: bench.pip("install", _TORCH)),
        _shared_step(
            f"installing {len(_PACKAGES) + 1} packages that SGLang imports in it", _fill_shared
        ),
        Step(title="putting it on the path", work=_see_shared),
        Step(
            title=f"installing the files of sglang {version}",
            work=lambda bench: bench.pip("install", "--no-deps", f"sglang=={version}"),
        ),
        Step(
            title="installing the transformers that it names",
            work=lambda bench: _install_transformers(bench, version),
        ),
    )


def _shared_step(title: str, work: Callable[[Bench], None]) -> Step:
    """A step in the shared environment, left out where another version did it."""

    def once(bench: Bench) -> None:
        shared = _shared(bench)
        marks = shared.directory / "eyas-shared.json"
        done = json.loads(marks.read_text(encoding="utf-8")) if marks.is_file() else []
        wanted = f"{title}: {_TORCH} {' '.join(_PACKAGES)} {_QUANTISED}"
        if wanted in done:
            return
        work(shared)
        marks.write_text(json.dumps([*done, wanted]), encoding="utf-8")

    return Step(title=title, work=once)


def _shared(bench: Bench) -> Bench:
    return replace(bench, directory=bench.directory.with_name(_SHARED))


def _make_shared(bench: Bench) -> None:
    bench.make_venv()


def _fill_shared(bench: Bench) -> None:
    bench.pip("install", _TORCH, *_PACKAGES)
    bench.pip("install", "--no-deps", _QUANTISED)


def _see_shared(bench: Bench) -> None:
    """What the version has of its own comes first, then the shared packages."""
    path = bench.site_packages / "zz_eyas_shared.pth"
    path.write_text(f"{_shared(bench).site_packages}\n", encoding="utf-8")


def _install_transformers(bench: Bench, version: str) -> None:
    """Each version names one transformers exactly, and parses configs as that one does."""
    info = bench.site_packages / f"sglang-{version}.dist-info" / "METADATA"
    needed = HeaderParser().parsestr(info.read_text(encoding="utf-8")).get_all("Requires-Dist", [])
    # Up to 0.5.2 it stands among the extras of every platform, always the same.
    exact = {n.partition(";")[0].strip() for n in needed if n.startswith("transformers==")}
    if len(exact) != 1:
        raise ProbeError(
            f"{info} names no exact transformers",
            hint="install it where there is CUDA, or name a Python with --python",
        )
    bench.pip("install", *exact, *_TOKENIZERS.get(version, ()))


RECIPE = Recipe(
    engine="sglang",
    newest="0.5.23",
    script="sglang_probe.py",
    steps=_steps,
    check=_CHECK,
)
