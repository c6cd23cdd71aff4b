# Each target sets up what it needs by itself in .venv; PYTHON is any Python of at least 3.11.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# two torch threads spin against each other on a busy machine
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-slow lint bench results docs clean

demo: .venv/.core
	$(BIN)/leadline demo

test: lint
	$(BIN)/pytest -n 2 -m "not slow"

test-slow: .venv/.dev
	$(BIN)/pytest -m slow

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.dev
	$(BIN)/python benchmarks/all.py

# what the pages of the papers show; hours at first, seconds once the runs are there (exit code 1: a claim fails)
results: .venv/.core
	$(BIN)/leadline reproduce all --scale laptop --keep docs/results || [ $$? -eq 1 ]
	$(BIN)/leadline verify --keep docs/results || [ $$? -eq 1 ]

docs: .venv/.docs
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

clean:
	rm -rf .venv build docs/_build src/*.egg-info

.venv/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "leadline needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml constraints.txt | .venv/bin/pip
	$(PIP) -e .
	@touch $@

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/pip
	$(PIP) -e '.[dev]'
	@touch $@ .venv/.core

.venv/.docs: pyproject.toml constraints.txt | .venv/bin/pip
	$(PIP) -e '.[docs]'
	@touch $@
