# Everything a newcomer types. `make demo` and `make test` set up a fresh machine by themselves (Python 3.11 or newer, nothing else).

PYTHON ?= python3
TORCH ?= torch==2.13.0   # the pinned build; on Linux without a GPU let pip find the CPU wheel (it is ten times smaller)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check-all lint bench docs clean

demo: $(READY) ## train the embedded model from a verifier: about two minutes
	$(BIN)/burnish train grpo --task mix --model tiny --steps 100 --seed 0

test: lint ## everything that is proven, in a few minutes
	$(BIN)/python -m pytest

check-all: lint ## the same and the long checks: kills, soak, all combinations
	$(BIN)/python -m pytest -m ""

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) ## what takes how long, as ratios measured side by side
	$(BIN)/python -m benchmarks

docs: $(READY) ## every link, command and code block of the documentation, run
	$(BIN)/python -m pytest tests/docs

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $(READY)

clean: ## forget the environment and what was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
