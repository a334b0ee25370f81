"""Ask the installed engines again for what the fixtures hold.

    python -m tests.probe.record [ENGINE-VERSION ...]

Each folder of fixtures bears the name of an engine and a version, which is installed where it is
not there. What changes is for git to show.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from eyas.errors import ProbeError
from eyas.probe.answer import interpreter_of
from eyas.probe.environment import install
from eyas.probe.fixture import Fixture, read_fixture, write_fixture
from eyas.probe.job import Job, job_of
from eyas.probe.run import Limits, ask

FIXTURES = Path(__file__).parent / "fixtures"


def main(names: list[str]) -> int:
    """Renews the fixtures in the folders `names`, or in all; 1 where one could not be asked."""
    failed = 0
    for folder in sorted(p for p in FIXTURES.iterdir() if p.name in names or not names):
        engine, _, version = folder.name.partition("-")
        install(engine, version, print)
        failed += _renew(folder, engine, version)
    return 1 if failed else 0


def _renew(folder: Path, engine: str, version: str) -> int:
    interpreter = interpreter_of(engine, version, None)
    files = sorted(folder.glob("*.json"))
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        fixtures, jobs = [], []
        for file in files:
            fixture, job = _job(file, engine, Path(place) / file.stem)
            fixtures.append(fixture)
            jobs.append(job)
        for file, fixture, record in zip(
            files, fixtures, ask(interpreter, jobs, Limits()), strict=True
        ):
            if isinstance(record, ProbeError):
                print(f"{file}: {record}")
                failed += 1
                continue
            launch = dict(fixture.launch.settings)
            write_fixture(file, fixture.checkpoint, fixture.target, launch, fixture.runner, record)
    print(f"{folder.name}: {len(files) - failed} of {len(files)} renewed")
    return failed


def _job(file: Path, engine: str, place: Path) -> tuple[Fixture, Job]:
    (place / "job").mkdir(parents=True)
    fixture = read_fixture(file, place)
    job = job_of(
        engine, fixture.runner, fixture.checkpoint, fixture.target, fixture.launch, place / "job"
    )
    return fixture, job


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
