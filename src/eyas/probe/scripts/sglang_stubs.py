"""Modules that stand in for the GPU packages which SGLang imports, so that it imports on a CPU.

SGLang imports kernels at module level and defines its layers with them. Nothing of that computes
while weights are loaded, so an importable name is enough; but a stub that was called there would
return nothing and the load would seem to pass. While `forbid` holds, a call raises instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from outcome import Unknown

ROOTS = [
    "sgl_kernel",
    "torchvision",
    "torchaudio",
    "tvm_ffi",
    "cutlass",
    "quack",
    "cuda",
]


class StubCalled(RuntimeError):  # noqa: N818 - seen by the engine, and by nobody else
    """A stand-in was called where the engine would have computed something."""


class _State:
    forbidden = False
    called: str | None = None


class Stub:
    """Anything that a stub module is asked for: importable, subclassable, not computable."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Stub:
        """Any name is there, but what Python itself looks for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._path}.{name}")

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        """As a decorator it leaves a function as it is; else another stub."""
        if _State.forbidden:
            _State.called = f"{self._path} is not installed here, and the engine called it"
            raise StubCalled(_State.called)
        if len(arguments) == 1 and callable(arguments[0]):
            return arguments[0]  # used as a decorator
        return Stub(f"{self._path}()")

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type, ...]:
        """As a base class it is none."""
        return (object,)

    def __getitem__(self, key: object) -> Stub:
        """Any item is there."""
        return Stub(f"{self._path}[{key}]")

    def __iter__(self) -> Iterator[Any]:
        """It holds nothing to go through."""
        return iter(())

    def __bool__(self) -> bool:
        """What it would say of the GPU is no."""
        return False

    def __or__(self, other: object) -> Any:
        """In a union of types it is the other one."""
        return other

    __ror__ = __or__


class _StubModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")


class _StubFinder(MetaPathFinder, Loader):
    """Finds a stub for every module below the roots; asked last, so a real package comes first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The stub of `fullname`, where it is below a root."""
        if fullname.partition(".")[0] not in ROOTS or _asked_by_transformers():
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that any other may be imported from."""
        module = _StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has no content."""


def _asked_by_transformers() -> bool:
    """Whether transformers looks for what is installed: it has code for torchvision's absence."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "transformers.utils.import_utils":
            return frame.f_code.co_name != "_get_module"
        frame = frame.f_back
    return False


def install() -> None:
    """Let the roots be imported."""
    sys.meta_path.append(_StubFinder())


def add(root: str) -> None:
    """Let one more root be imported."""
    ROOTS.append(root)


@contextmanager
def forbid() -> Iterator[None]:
    """While this holds, a call of a stub raises; Unknown at the end, whoever caught that."""
    _State.forbidden, _State.called = True, None
    try:
        yield
    finally:
        _State.forbidden = False
        if _State.called is not None:
            raise Unknown(_State.called)
