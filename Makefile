# `make run` and `make test` each do everything on a fresh clone: they need Python 3.11
# or newer with pip, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: run test test-ci test-all lint bench bench-tables package docs clean

run: $(VENV)/.run
	$(BIN)/python -m studies --out report $(ARGS)

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow"

test-all: $(VENV)/.test lint
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --hypothesis-profile=varied

# The slow tests that `.ci/run` adds to `make test`: scikit-learn's own suites, parity on
# real data, random problems.
test-ci: $(VENV)/.test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope -m ci

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# `make bench -- --threads 1,2,4` is short for `make bench ARGS="--threads 1,2,4"`.
BENCH := $(ARGS) $(filter-out bench,$(MAKECMDGOALS))
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(BENCH)
ifeq ($(filter --threads%,$(BENCH)),)
	$(BIN)/python -m benchmarks.linear $(filter --fast,$(BENCH))
	$(BIN)/python -m benchmarks.tabular $(filter --fast,$(BENCH))
	$(BIN)/python -m benchmarks.selection --data tables $(filter --fast,$(BENCH))
endif

# The results behind the tables of README and docs, part by part into one file. A part
# that is in the file already is measured again; `make bench-tables PARTS="a9a svr"`
# measures some. All parts must be of one commit.
TABLES ?= benchmarks/results/$(shell date +%F)-$(shell $(PYTHON) -c 'import os; print(os.cpu_count())')-cores.jsonl
PARTS ?= mnist mnist-large linear-poly a9a ijcnn1 letter regression one-class sparse \
	ovr probability ecoc hundred small
bench-tables: $(VENV)/.bench
	for part in $(PARTS); do \
		$(BIN)/python -m benchmarks --part $$part --merge $(TABLES) || exit 1; \
	done
	@echo "Name $(TABLES) in README.md and docs/benchmarks.md, then run tools/figures.py"

package: $(VENV)/.test
	$(BIN)/python tools/check_package.py

ifneq ($(filter bench,$(MAKECMDGOALS)),)
$(filter-out bench,$(MAKECMDGOALS)):
	@:
endif

docs: $(VENV)/.docs
	rm -rf docs/_generated docs/auto_examples
	$(BIN)/python -m sphinx -q -W --keep-going docs docs/_build
	@echo "The pages are in docs/_build/index.html"

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Mercer needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[studies]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[test]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) docs/_build docs/_generated docs/auto_examples .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
