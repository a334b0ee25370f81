"""Recipe: the steps that make an engine's own environment, and how its probe is started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eyas.errors import ProbeError

_OWN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The folder in which an environment is made, and what is written to while it is."""

    directory: Path
    log: Path
    environment: Mapping[str, str]

    @property
    def python(self) -> Path:
        """The environment's own Python."""
        return self.directory / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its packages are."""
        return next((self.directory / "lib").glob("python*/site-packages"))

    def make_venv(self) -> None:
        """An empty virtual environment of the Python that runs eyas."""
        self.call(sys.executable, "-m", "venv", "--clear", str(self.directory))

    def pip(self, *arguments: str) -> None:
        """pip in the environment; raises ProbeError."""
        self.call(str(self.python), "-m", "pip", *arguments)

    def call(self, *line: str) -> None:
        """Runs `line`, its output in the log; raises ProbeError."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(line)}\n")
            log.flush()
            done = subprocess.run(
                line, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment
            )
        if done.returncode:
            raise ProbeError(
                f"{' '.join(line[1:4])} … ended with {done.returncode}", hint=f"see {self.log}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A piece of work that can be done twice, and what is said while it is done."""

    title: str
    work: Callable[[Bench], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one engine is installed and asked.

    `steps` takes the version and whether there is a CUDA device; `script` is the probe, a file in
    ``scripts/`` or an absolute path; `variables` are what the environment's folder needs set for
    it; `check` is Python that fails where the engine does not work.
    """

    engine: str
    newest: str
    script: str
    steps: Callable[[str, bool], tuple[Step, ...]]
    check: str
    variables: Callable[[Path, str], Mapping[str, str]] = lambda directory, version: {}


def has_cuda() -> bool:
    """Whether this machine has a CUDA device, by its driver's own tool."""
    return shutil.which("nvidia-smi") is not None


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without what belongs to the Python that runs eyas."""
    return {k: v for k, v in environment.items() if k not in _OWN_VARIABLES}
