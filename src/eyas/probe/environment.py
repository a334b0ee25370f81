"""Environment: an engine's own Python in eyas's cache, made by its recipe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic

from eyas.checkpoint import cache_dir
from eyas.engines import Version
from eyas.engines.version import version_of
from eyas.errors import EngineError, ProbeError, reason_of
from eyas.probe.recipes.recipe import Bench, Recipe, has_cuda, without_ours

_DONE = "eyas-steps.json"  # the titles of the steps that are done: a kill costs one step
_MARK = "eyas-installed.json"  # written last: without it an environment is none
ENGINES = ("vllm", "sglang", "llamacpp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An engine that is installed: its folder, how large it is, and how long it took."""

    engine: str
    version: str
    directory: Path
    size: int
    seconds: float

    @property
    def python(self) -> Path:
        """The Python that the engine is installed for."""
        return self.directory / "bin" / "python"


def recipe_of(engine: str) -> Recipe:
    """The recipe of `engine`; raises EngineError."""
    name = engine.lower()
    if name not in ENGINES:
        raise EngineError(
            f"eyas cannot install an engine {engine!r}", hint=f"known: {', '.join(ENGINES)}"
        )
    try:
        recipe: Recipe = import_module(f"eyas.probe.recipes.{name}").RECIPE
    except ModuleNotFoundError:
        raise EngineError(f"this version of eyas has no recipe for {name}") from None
    return recipe


def installed(engine: str | None = None) -> list[Environment]:
    """What is installed, all or of one engine, oldest version first."""
    found = []
    root = _root()
    for mark in sorted(root.glob(f"*/{_MARK}")):
        fields = json.loads(mark.read_text(encoding="utf-8"))
        if engine is None or fields["engine"] == engine:
            found.append(Environment(**{**fields, "directory": mark.parent}))
    return sorted(found, key=lambda e: (e.engine, version_of(e.version)))


def environment_of(engine: str, version: str | None) -> Environment:
    """The environment of `engine`, of its newest version unless one is named.

    Raises ProbeError where it is not installed.
    """
    recipe = recipe_of(engine)
    there = [e for e in installed(recipe.engine) if version in (None, e.version)]
    if not there:
        wanted = recipe.engine if version is None else f"{recipe.engine} {version}"
        option = "" if version is None else f" --version {version}"
        raise ProbeError(
            f"{wanted} is not installed in {_root()}",
            hint=f"run: eyas engine install {recipe.engine}{option}, or name its Python with"
            " --python",
        )
    return there[-1]


def install(
    engine: str, version: str | None, say: Callable[[str], None], *, cuda: bool | None = None
) -> Environment:
    """The environment of `engine`, made where it is not there yet; `say` is told each step.

    What a killed process had begun is gone on with. Raises EngineError for an unknown engine,
    ProbeError where a step fails or another process is at it.
    """
    recipe = recipe_of(engine)
    version = version or recipe.newest
    if Version.parse(version) is None:
        raise EngineError(f"{version!r} is not a version", hint=f"for example {recipe.newest}")
    there = [e for e in installed(recipe.engine) if e.version == version]
    if there:
        return there[0]
    directory = _root() / f"{recipe.engine}-{version}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory):
            return _made(recipe, version, directory, say, has_cuda() if cuda is None else cuda)
    except OSError as error:
        raise ProbeError(
            f"{directory} cannot be written: {reason_of(error)}", hint="check the disk"
        ) from None


def _made(
    recipe: Recipe, version: str, directory: Path, say: Callable[[str], None], cuda: bool
) -> Environment:
    begun = monotonic()
    bench = Bench(
        directory=directory,
        log=directory.with_name(f"{directory.name}.log"),
        environment={**without_ours(os.environ), **recipe.variables(directory, version)},
    )
    steps = recipe.steps(version, cuda)
    done_file = directory / _DONE
    done: list[str] = json.loads(done_file.read_text()) if done_file.is_file() else []
    for index, step in enumerate(steps, 1):
        if step.title in done:
            continue
        say(f"{recipe.engine} {version}: {step.title} (step {index} of {len(steps) + 1})")
        _work(step.work, bench, f"{recipe.engine} {version} cannot be installed: {step.title}")
        done.append(step.title)
        _write(done_file, done)
    say(f"{recipe.engine} {version}: trying it (step {len(steps) + 1} of {len(steps) + 1})")
    check = f"{recipe.engine} {version} is installed and does not work"
    _work(lambda b: b.call(str(b.python), "-c", recipe.check), bench, check)
    environment = Environment(
        engine=recipe.engine,
        version=version,
        directory=directory,
        size=sum(p.lstat().st_size for p in directory.rglob("*") if not p.is_dir()),
        seconds=round(monotonic() - begun, 1),
    )
    _write(directory / _MARK, {k: v for k, v in asdict(environment).items() if k != "directory"})
    return environment


def _work(work: Callable[[Bench], None], bench: Bench, what: str) -> None:
    try:
        work(bench)
    except ProbeError as error:
        raise ProbeError(f"{what}: {error.message}", hint=error.hint) from None


def _write(file: Path, value: object) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


def _root() -> Path:
    return cache_dir() / "engines"


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """No other process makes `directory` meanwhile; raises ProbeError where one does."""
    if os.name == "nt":
        raise ProbeError("eyas installs engines on Linux and macOS alone", hint="use --python")
    import fcntl

    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProbeError(
                f"another process is making {directory}", hint="wait for it to end"
            ) from None
        yield
