# Every target makes its own virtual environment (.venv) when there is none, and brings it up to
# date when pyproject.toml has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Threads that wait long give their core away: beside other work, spinning makes training several
# times slower.
export GOMP_SPINCOUNT ?= 10000

# Figures are drawn into files, so no screen is needed.
export MPLBACKEND ?= Agg

AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench page-parts

help:
	@echo 'make demo   train an encoder on digits without labels, and draw what it learned, into demo/'
	@echo 'make test   run the tests and the examples in the docstrings'
	@echo 'make lint   check style, formatting and types'
	@echo 'make bench  time objectives and estimators beside those of other libraries'

demo: $(VENV)/.installed-dev
	$(BIN)/python examples/digits.py --out demo

# One worker more than there are cores: many tests wait for processes that they started.
WORKERS = $(shell $(PYTHON) -c 'import os; print(1 + len(getattr(os, "sched_getaffinity", \
  lambda _: range(os.cpu_count()))(0)))')

test: $(VENV)/.installed-dev page-parts
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

# Pages are tested in a real browser, with pictures of clothes.
CLOTHES := /usr/share/datasets/fashion-mnist
MISSING = $(shell command -v chromium > /dev/null || echo chromium) \
  $(shell [ -n "$$LIKEWISE_FASHION_MNIST" ] || [ -d $(CLOTHES) ] || echo dataset-fashion-mnist)

page-parts:
	@[ -z "$(strip $(MISSING))" ] || $(AS_ROOT) apt-get install -y -q $(MISSING) \
	  || { $(AS_ROOT) apt-get update -q && $(AS_ROOT) apt-get install -y -q $(MISSING); }

lint: $(VENV)/.installed-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy src

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/objectives.py
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/throughput.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -e '.[dev]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(BIN)/python -m pip install -e '.[dev,bench]'
	@touch $@
