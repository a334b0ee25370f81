# `make demo` and `make test` need Python 3.11 with venv and pip, and nothing else.
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One thread and no spinning: the tests and the demo share small machines with other work.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: demo test lint check format target score-diagnose

demo: target
	$(BIN)/eyas demo --plot acceptance.png

test: target
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

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

# The embedded target; a second call finds it in eyas's cache.
target: $(READY)
	$(BIN)/eyas target smollm2 --quiet

$(READY): pyproject.toml constraints.txt requirements-dev.txt scripts/setup.sh
	scripts/setup.sh $(VENV)
	touch $(READY)
