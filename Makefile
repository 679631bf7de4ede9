# Everything that is done here, by name. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
# the first Python that is new enough
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
TARGET := $(or $(CARGO_TARGET_DIR),target)
CARGO := cargo
# PyO3's build script asks this interpreter
export PYO3_PYTHON := $(abspath $(BIN))/python

.PHONY: help demo test test-all test-rest guarantees bench bench-append bench-spark wheel fmt lint rust python interop \
	oldest-spark loom extension release prerequisites clean

# Which Python tests run where: `make python`, a part of `make test`, runs all but those with this mark, and `make interop`, a
# part of `make test-all`, runs those. Tests in parallel share a process as tests/python/conftest.py says.
LATER := interop
PYTEST := $(BIN)/python -m pytest
IN_PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: release ## the main jobs, on real data in the repository
	@$(BIN)/python tests/demo.py

test: prerequisites lint rust python ## before each commit: lints, Rust, Python, Spark, a short crash search; minutes
	@echo "make test: all of it passed"

test-all: test test-rest ## what CI runs: `test`, then `test-rest`

# The guarantees come last: their other tests have run by then, and `--tests-have-run` leaves the rigs.
test-rest: interop oldest-spark loom demo ## what `test` leaves out: Kafka, the oldest Spark, loom, the demo, the guarantees' rigs
	$(BIN)/python tests/guarantees.py --tests-have-run
	@echo "make test-rest: all of it passed"

lint: extension ## rustfmt, clippy, rustdoc, ruff, mypy, and the stub held against the built module
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --all-features
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml cordwood._core

rust: ## Rust tests and doc examples; the layer check is one of them
	$(CARGO) test --locked --no-default-features --lib
	$(CARGO) test --locked --features arrow,crash-disk

python: extension ## Python tests but for `make interop`, and the examples of the README, the stub and the docstrings
	$(PYTEST) $(IN_PARALLEL) -m "not ($(LATER))"
	$(BIN)/python tests/doc_examples.py

interop: prerequisites release ## the Python tests that compare with Kafka's own classes and a broker (a JVM, Maven)
	$(PYTEST) -m "$(LATER)"

# Beside the pinned version that `make python` uses: the oldest that pyproject.toml allows. Its directory comes first on the path.
OLDEST_SPARK := 4.2.0
oldest-spark: release $(VENV)/spark-$(OLDEST_SPARK)/.installed ## the tests of shared sources and streams with the oldest Spark
	PYTHONPATH=$(abspath $(VENV))/spark-$(OLDEST_SPARK) $(BIN)/python -m pytest \
		tests/python/spark/test_reuse.py tests/python/spark/test_streams.py

$(VENV)/spark-%/.installed: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) pyspark==$*
	@touch $@

# The shipped skip list and group commit under every interleaving that loom can think of; then with a store of the one made
# weaker and a check of the other left out, which loom has to notice, or the first run shows nothing. Each has its own target
# directory: the flags rebuild everything.
LOOM := CARGO_PROFILE_RELEASE_LTO=off $(CARGO) test --locked --lib --release --no-default-features models
SEEDED := --cfg loom --cfg seeded_relaxed_publication --cfg seeded_forgotten_truncation
loom: ## skip list and group commit under every interleaving; and seeded faults, which have to be found
	@mkdir -p $(TARGET)/loom
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom $(LOOM) 2>&1 | tee $(TARGET)/loom/shipped.log
	@grep -q '^test result: ok\. [1-9]' $(TARGET)/loom/shipped.log || { echo "loom ran no test"; exit 1; }
	RUSTFLAGS="$(SEEDED)" CARGO_TARGET_DIR=$(TARGET)/loom-seeded $(LOOM) --no-run
	@RUSTFLAGS="$(SEEDED)" CARGO_TARGET_DIR=$(TARGET)/loom-seeded $(LOOM) > $(TARGET)/loom/seeded.log 2>&1 || true
	@for part in skip_list group_commit; do \
		grep -q "^test .*$$part::models.* FAILED" $(TARGET)/loom/seeded.log || { \
		cat $(TARGET)/loom/seeded.log; echo "loom did not notice the seeded fault of $$part"; exit 1; }; done
	@echo "loom noticed the seeded faults, as it has to"

guarantees: prerequisites release ## what the README guarantees: its tests, and its rigs at full length; writes the figures
	$(BIN)/python tests/guarantees.py --write

bench: ## criterion; every answer is asserted
	$(CARGO) bench --locked --features arrow

bench-append: ## writing and recovering beside Kafka's own classes (a JVM, Maven); ARGS are those of benches/append.rs
	$(CARGO) bench --locked --bench append -- $(ARGS)

bench-spark: release ## what reading through Spark costs; ARGS are those of benches/spark/run.py
	$(BIN)/python benches/spark/run.py $(ARGS)

wheel: $(VENV)/.tools ## an abi3 wheel in dist/
	$(BIN)/maturin build --release --locked --out dist

fmt: $(VENV)/.tools ## format Rust and Python
	$(CARGO) fmt
	$(BIN)/ruff check --fix --quiet || true
	$(BIN)/ruff format

extension: $(VENV)/.extension ## .venv with cordwood in it for tests, built again where a source changed

release: $(VENV)/.release ## .venv with cordwood in it at full speed, as wheels have it

clean: ## remove what was built here
	rm -rf $(VENV) dist python/cordwood/_core*.so tests/interop/target benches/kafka/target
	$(CARGO) clean

# What some tests need and a machine may lack: there they are skipped, by name; in CI that is a failure.
prerequisites:
	@for tool in strace java javac mvn; do \
		command -v $$tool > /dev/null && continue; \
		echo "skipped: the tests that need $$tool, which is not installed"; \
		[[ -z "$${CI:-}" ]] || exit 1; \
	done

$(VENV)/.tools: requirements-dev.txt
	@[[ -n "$(PYTHON)" ]] || { echo "cordwood needs Python 3.11 or newer, and found none"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

# Python files are used in place; only Rust has to be built again, and the stub, from which its docstrings come. Tests use a build
# that is quick to make and has every assertion; what measures or repeats for long uses one as wheels have it. One replaces the other.
STUBS := python/cordwood/_core.pyi $(wildcard python/cordwood/_stubs/*.pyi)
SOURCES := $(VENV)/.tools pyproject.toml Cargo.toml Cargo.lock build.rs $(STUBS) $(shell find src -name '*.rs')
DEVELOP := VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked

$(VENV)/.extension: $(SOURCES)
	$(DEVELOP)
	@rm -f $(VENV)/.release
	@touch $@

$(VENV)/.release: $(SOURCES)
	$(DEVELOP) --release
	@rm -f $(VENV)/.extension
	@touch $@
