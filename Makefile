# `make demo` and `make test` need Python 3.11 with venv and pip, and nothing else.
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One thread and no spinning: the tests and the demo share small machines with other work.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: demo test test-engines test-report lint check format target record-probes score-diagnose

demo: target
	$(BIN)/eyas demo --plot acceptance.png

test: target
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

# Real vLLM, SGLang and llama.cpp in the loop. What is missing of them is installed in eyas's cache.
test-engines: target
	$(BIN)/eyas engine install vllm --quiet
	for version in 0.5.8 0.5.11 0.5.23; do $(BIN)/eyas engine install sglang --version $$version --quiet || exit; done
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest engine_tests --numprocesses=0 --timeout=1800 $(PYTEST_ARGS)

# The page of `eyas diagnose --report` in a headless Chromium, which must be there (Debian: chromium).
test-report: $(READY)
	$(BIN)/python -m pytest --numprocesses=0 tests/diagnose/in_a_browser.py

# Damaged drafters of a new seed, and what eyas says of them; SCORE_ARGS=--resume goes on.
score-diagnose: target
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.score_diagnose $(SCORE_ARGS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Asks the engines again what tests/probe/fixtures holds; installs those that are not there (GB).
record-probes: $(READY)
	$(BIN)/python -m tests.probe.record

# The embedded target; a second call finds it in eyas's cache.
target: $(READY)
	$(BIN)/eyas target smollm2 --quiet

$(READY): pyproject.toml constraints.txt requirements-dev.txt scripts/setup.sh
	scripts/setup.sh $(VENV)
	touch $(READY)
