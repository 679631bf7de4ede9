# What contributors use; `make help` lists all targets. The rigs are in tests/rigs.mk, the benches in
# benches/benches.mk.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
# the first Python that is recent enough
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
TARGET := $(or $(CARGO_TARGET_DIR),target)
CARGO := cargo
# A command builds the default members of the workspace, or its own package beside these two: with one set of
# features, of the dependencies too, the core is compiled once for all.
CORE := --package cordwood --package cordwood-python
RUST_TESTS := $(CARGO) test --locked
# Without optimisation the unit tests compile in a fraction of the time, which is more than they then take
# longer.
UNIT_TESTS := CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) test --locked --package cordwood --features binding --lib
JAR := python/cordwood/spark/jars/cordwood-spark.jar
# the assertions of the Python tests are compiled once, not by every process that collects tests
unexport PYTHONDONTWRITEBYTECODE
# PyO3's build script uses this interpreter
export PYO3_PYTHON := $(abspath $(BIN))/python

.PHONY: help demo docs check test test-all test-rest lint rust compiled python interop costs wheel jar fmt extension release dist clean prerequisites

# `make python`, a part of `make test`, runs all Python tests except those with these marks, which `make
# interop`, a part of `make test-all`, runs. tests/python/conftest.py determines which tests share a process
# when they run in parallel. There is one process more than cores, because the one with Spark often waits.
LATER := interop or long or java
PYTEST := $(BIN)/python -m pytest
BY_GROUP := --dist loadscope --no-loadscope-reorder
IN_PARALLEL := --numprocesses $$(($$(nproc) + 1)) --maxprocesses 4 $(BY_GROUP)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# without a JDK and Maven the part with Spark uses the source in Python
demo: release $(if $(shell command -v mvn && command -v javac),$(JAR)) ## run the main jobs on real data in the repository
	@$(BIN)/python tests/demo.py

# The tools of the site are in a directory of their own. It has no page of another server, and can be opened
# from the disk.
docs: extension $(VENV)/docs/.installed ## the documentation as a site in target/site, strictly; and its examples are run; a browser searches it
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(abspath $(VENV))/docs $(BIN)/python -m mkdocs build --strict --quiet \
		--config-file docs/mkdocs.yml --site-dir $(abspath $(TARGET))/site
	$(BIN)/python tests/doc_examples.py
	CORDWOOD_SITE=$(abspath $(TARGET))/site $(PYTEST) -q tests/python/docs
	@echo "make docs: $(TARGET)/site/index.html"

$(VENV)/docs/.installed: docs/requirements.txt $(VENV)/.tools
	rm -rf $(@D)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) --requirement $<
	@touch $@

# The modules with changes that are not committed, if M names none. Without optimisation the crate compiles in
# a fraction of the time.
MODULES := $(sort $(basename $(notdir $(wildcard src/*))))
M ?= $(filter $(MODULES),$(shell git diff --name-only HEAD -- src tests/rust | sed -nE 's,^(src|tests/rust)/([a-z_]+)[/.].*,\2,p' | sort -u))
check: $(VENV)/.tools ## after each edit: format, clippy, ruff, mypy, the tests of the changed modules (or `make check M=segment`)
	$(foreach name,$(filter-out $(MODULES),$(M)),$(error M=$(name): expected modules of src: $(MODULES)))
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --lib -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(if $(M),$(UNIT_TESTS) -- $(addsuffix ::,$(M)))
	$(if $(M),CARGO_PROFILE_DEV_OPT_LEVEL=0 $(RUST_TESTS) --test '*' -- $(addsuffix ::,$(M)))

test: prerequisites compiled lint rust python ## before each commit: lints, Rust, Python, Spark, a short crash search; minutes
	@echo "make test: all of it passed"

test-all: test test-rest ## what CI runs: `test`, then `test-rest`

# The tests that the guarantees name have run before, except `make power-cuts`; `make guarantees` runs the
# rigs, `make loom` the models of threads.
test-rest: interop costs java oldest-spark demo docs ## the tests outside `test`: Kafka, the oldest Spark, the demo, the documentation, rustdoc, the names of the guarantees
	$(CARGO) clippy --locked --package cordwood --lib --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps
	$(BIN)/python tests/guarantees.py --names
	@echo "make test-rest: all of it passed"

lint: extension ## rustfmt, clippy, ruff, mypy, and a comparison of the stub with the built module
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --lib --tests --bench '*' -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml cordwood._core

rust: ## Rust tests and doc examples; the layer check is one of them
	$(UNIT_TESTS)
	$(RUST_TESTS) --test '*'
	$(RUST_TESTS) $(CORE) --doc

# Compiles the Rust tests while pip installs the tools: on a bare machine each of them leaves a core idle.
# $(TOOLS) is a variable, because `make -n` executes a recipe line in which it finds $$(MAKE).
TOOLS := $(MAKE) --no-print-directory $(VENV)/.tools
compiled:
	@{ $(UNIT_TESTS) --no-run && $(RUST_TESTS) --test '*' --no-run; } & compiling=$$!; $(TOOLS) || { wait $$compiling; exit 1; }; wait $$compiling

python: extension ## Python tests except `make interop`, and the examples of the README, the documentation, the stub and the docstrings
	$(PYTEST) $(IN_PARALLEL) --durations 20 -m "not ($(LATER))"
	$(BIN)/python tests/doc_examples.py

interop: prerequisites release ## the longest Python tests, and those that compare with Kafka's own classes and a broker (a JVM, Maven)
	$(PYTEST) $(IN_PARALLEL) --durations 20 -m "interop or long"

costs: release ## instructions and allocations of hot paths, compared with recorded ones (valgrind)
	$(RUST_TESTS) $(CORE) --package cordwood-costs --release --test costs

wheel: $(VENV)/.tools dist-jar ## an abi3 wheel in dist/, with the data source in Java (Maven)
	$(BIN)/maturin build --locked --out dist

jar: $(JAR) ## the Spark data source in Java, with the native library inside (a JDK, Maven)

JAR_PROFILE := release
$(JAR): Cargo.toml Cargo.lock src/jvm/Cargo.toml $(shell find src -name '*.rs') $(shell find src/jvm -type f)
	$(CARGO) build --locked --package cordwood-jvm $(CORE) --profile $(JAR_PROFILE) --lib
	mvn -B -q -Dstyle.color=never -f src/jvm/pom.xml package \
		-Dcordwood.library=$(abspath $(TARGET))/$(JAR_PROFILE)/libcordwood_jvm.so
	@mkdir -p $(@D)
	mv target/jvm/maven/cordwood-spark.jar $@

fmt: $(VENV)/.tools ## format Rust and Python
	$(CARGO) fmt
	$(BIN)/ruff check --fix --quiet || true
	$(BIN)/ruff format

extension: $(VENV)/.extension ## .venv with a build of cordwood for tests, rebuilt if a source changed

release: $(VENV)/.release ## .venv with an optimised build of cordwood

dist: $(VENV)/.dist ## .venv with the build of the wheels, which takes longer, for benches

clean: ## remove everything that was built
	rm -rf $(VENV) dist python/cordwood/_core*.so $(JAR) tests/interop/target benches/kafka/target benches/spark/kafka-source/target
	$(CARGO) clean

# Tools that some tests need. If one is missing, these tests are skipped by name; in CI that is a failure.
prerequisites:
	@for tool in strace valgrind chromium java javac mvn; do \
		command -v $$tool > /dev/null && continue; \
		echo "skipped: the tests that need $$tool, which is not installed"; \
		[[ -z "$${CI:-}" ]] || exit 1; \
	done

$(VENV)/.tools: requirements-dev.txt
	@[[ -n "$(PYTHON)" ]] || { echo "cordwood needs Python 3.11 or newer, and found none"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

# Python files are used in place; Rust is rebuilt, also if the stub changes, which contains its docstrings.
# Tests use a build that is fast to compile and has all assertions; rigs and tests with Kafka use an optimised
# one; benches measure that of the wheels. Each build replaces the others.
STUBS := python/cordwood/_core.pyi $(wildcard python/cordwood/_stubs/*.pyi)
SOURCES := $(VENV)/.tools pyproject.toml Cargo.toml Cargo.lock src/python/Cargo.toml $(STUBS) $(shell find src -name '*.rs')
DEVELOP := VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked

BUILDS := $(addprefix $(VENV)/,.extension .release .dist)
$(VENV)/.extension: PROFILE := dev
$(VENV)/.release: PROFILE := release
$(VENV)/.dist: PROFILE := dist

$(BUILDS): $(SOURCES)
	$(DEVELOP) --profile $(PROFILE)
	@rm -f $(BUILDS)
	@touch $@

include tests/rigs.mk benches/benches.mk
