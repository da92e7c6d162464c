# Every target sets up .venv by itself from requirements.lock; once that is done, it does nothing again.
# Needed: make and Python 3.11 or newer. Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check bench format lock clean

help:
	@echo "make demo    crawl a small news site over HTTP and watch it being de-duplicated"
	@echo "make test    run the tests"
	@echo "make check   formatting, lint, types, import floors"
	@echo "make bench   the measurements that the documents quote"
	@echo "make format  put the code into the form that check asks for"
	@echo "make lock    resolve the dependencies anew into requirements.lock"
	@echo "make clean   remove .venv and every cache"

demo: $(READY)
	$(BIN)/twinsieve demo

test: $(READY)
	$(BIN)/python -m pytest -q

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate

# Made with uv, needed by nobody who only installs: hashes for every platform and Python from 3.11 on.
lock: $(READY)
	$(BIN)/python -m pip install -q uv
	$(COMPILE) --extra all --group dev --group build --upgrade --output-file requirements.lock
	$(COMPILE) --extra scrapy --group build --constraint requirements.lock --output-file deploy/requirements.lock

# The stamp comes last, so a set-up that broke off starts again.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "twinsieve needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
