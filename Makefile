# All targets. `make help` lists them.

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
RUST_TESTS := $(CARGO) test --locked --features plan,inspect,crash-disk
JAR := python/cordwood/spark/jars/cordwood-spark.jar
# the assertions of the Python tests are compiled once, not by every process that collects tests
unexport PYTHONDONTWRITEBYTECODE
# PyO3's build script uses this interpreter
export PYO3_PYTHON := $(abspath $(BIN))/python

.PHONY: help demo docs test test-all test-rest guarantees exhaustive verify-flips bench bench-append bench-compaction bench-kafka bench-inspect bench-sweeps bench-cold bench-python bench-spark \
	jar wheel fmt lint compiled rust python java java-tests java-versions java-spark random-queries interop oldest-spark loom fuzz fuzz-targets repair-crashes power-cuts soak write-stress extension release dist dist-jar prerequisites clean

# `make python`, a part of `make test`, runs all Python tests except those with these marks, which `make interop`, a part of
# `make test-all`, runs. tests/python/conftest.py determines which tests share a process when they run in parallel. There is one
# process more than cores, because the one with Spark often waits.
LATER := interop or long or java
PYTEST := $(BIN)/python -m pytest
IN_PARALLEL := --numprocesses $$(($$(nproc) + 1)) --maxprocesses 4 --dist loadscope --no-loadscope-reorder

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# without a JDK and Maven the part with Spark uses the source in Python
demo: release $(if $(shell command -v mvn && command -v javac),$(JAR)) ## run the main jobs on real data in the repository
	@$(BIN)/python tests/demo.py

# The tools of the site are in a directory of their own. It has no page of another server, and can be opened from the disk.
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

test: prerequisites compiled lint rust python ## before each commit: lints, Rust, Python, Spark, a short crash search; minutes
	@echo "make test: all of it passed"

test-all: test test-rest ## what CI runs: `test`, then `test-rest`

# The tests that the guarantees name have run before, except `make power-cuts`; `make guarantees` runs the rigs, `make loom` the models
# of threads.
test-rest: interop java oldest-spark demo docs ## the tests outside `test`: Kafka, the oldest Spark, the demo, the documentation, the names of the guarantees
	$(BIN)/python tests/guarantees.py --names
	@echo "make test-rest: all of it passed"

lint: extension ## rustfmt, clippy, rustdoc, ruff, mypy, and a comparison of the stub with the built module
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --lib --tests --bench '*' --all-features -- -D warnings
	$(CARGO) clippy --locked --lib --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --all-features
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml cordwood._core

rust: ## Rust tests and doc examples; the layer check is one of them
	$(RUST_TESTS)
	$(CARGO) test --locked --features arrow --test costs

# Compiles the Rust tests while pip installs the tools: on a bare machine each of them leaves a core idle. $(TOOLS) is a variable,
# because `make -n` executes a recipe line in which it finds $$(MAKE).
TOOLS := $(MAKE) --no-print-directory $(VENV)/.tools
compiled:
	@$(RUST_TESTS) --no-run & compiling=$$!; $(TOOLS) || { wait $$compiling; exit 1; }; wait $$compiling

python: extension ## Python tests except `make interop`, and the examples of the README, the documentation, the stub and the docstrings
	$(PYTEST) $(IN_PARALLEL) --durations 20 -m "not ($(LATER))"
	$(BIN)/python tests/doc_examples.py

interop: prerequisites release ## the longest Python tests, and those that compare with Kafka's own classes and a broker (a JVM, Maven)
	$(PYTEST) $(IN_PARALLEL) --durations 20 -m "interop or long"

OLDEST_JAVA_SPARK := $(VENV)/spark-4.0.5
SPARKS := $(OLDEST_JAVA_SPARK) $(addprefix $(VENV)/spark-,4.1.4 4.2.1)
empty :=
java: prerequisites release ## the tests of the Spark data source in Java, with the newest Spark and some with the oldest
	@if command -v mvn > /dev/null && command -v javac > /dev/null; then $(MAKE) --no-print-directory java-tests; fi

java-tests: $(JAR) $(OLDEST_JAVA_SPARK)/.installed
	CORDWOOD_SPARKS=$(abspath $(OLDEST_JAVA_SPARK)) $(PYTEST) --durations 20 -m "java and not many"

java-versions: release $(JAR) $(addsuffix /.installed,$(SPARKS)) ## the Spark data source in Java with every version of Spark that it supports
	CORDWOOD_SPARKS=$(subst $(empty) $(empty),:,$(abspath $(SPARKS))) $(PYTEST) tests/python/spark_java/test_versions.py

# With the variable, the tests of the source in Python use the one in Java.
java-spark: prerequisites release $(JAR) ## the tests of the Spark data source in Python, run with the one in Java; half an hour
	CORDWOOD_SPARK_SOURCE=java $(PYTEST) tests/python/spark -m "not (java or python_source)"

random-queries: prerequisites release $(JAR) ## 2,250 random queries through both Spark data sources and Parquet; ten minutes
	$(PYTEST) --timeout 0 tests/python/spark_java/test_random_queries.py

# `make python` uses the pinned version; this is the oldest that pyproject.toml allows. Its directory is first on the path.
OLDEST_SPARK := 4.2.0
oldest-spark: release $(VENV)/spark-$(OLDEST_SPARK)/.installed ## the tests of shared sources and streams with the oldest Spark
	PYTHONPATH=$(abspath $(VENV))/spark-$(OLDEST_SPARK) $(BIN)/python -m pytest \
		tests/python/spark/test_reuse.py tests/python/spark/test_streams.py

$(VENV)/spark-%/.installed: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) pyspark==$*
	@touch $@

# Tests the shipped skip list and group commit under every interleaving that loom generates. Then a store of the skip list is
# weakened and a check of the group commit is removed, and loom must detect both; otherwise the first run proves nothing. The
# target directory is their own, because the flag rebuilds everything; the wrapper rebuilds the crate alone.
LOOM := CARGO_TARGET_DIR=$(TARGET)/loom RUSTFLAGS="--cfg loom" $(CARGO) test --locked --lib --no-default-features models
SEEDED := RUSTC_WORKSPACE_WRAPPER=$(abspath tests/seeded_rustc) $(LOOM)
loom: ## skip list and group commit under every interleaving; and seeded faults, which must be detected
	@mkdir -p $(TARGET)/loom
	$(LOOM) 2>&1 | tee $(TARGET)/loom/shipped.log
	@grep -q '^test result: ok\. [1-9]' $(TARGET)/loom/shipped.log || { echo "loom ran no test"; exit 1; }
	$(SEEDED) --no-run
	@$(SEEDED) > $(TARGET)/loom/seeded.log 2>&1 || true
	@for part in skip_list group_commit; do \
		grep -q "^test .*$$part::models.* FAILED" $(TARGET)/loom/seeded.log || { \
		cat $(TARGET)/loom/seeded.log; echo "loom did not detect the seeded fault of $$part"; exit 1; }; done
	@echo "loom detected the seeded faults"

# Each target runs for so many seconds. New inputs are written below target/; those that find a bug belong into tests/fuzz/corpus.
FUZZ_SECONDS := 20
FUZZ_TOOL := $(TARGET)/tools/bin/cargo-fuzz
FUZZ := PATH=$(abspath $(TARGET))/tools/bin:$$PATH $(CARGO) +nightly fuzz run --fuzz-dir tests/fuzz -O --debug-assertions
fuzz: ## cargo-fuzz for each decoder and for whole directories (a nightly Rust); FUZZ_SECONDS for each target
	@if $(CARGO) +nightly --version > /dev/null 2>&1; then $(MAKE) --no-print-directory fuzz-targets; \
		else echo "skipped: fuzzing needs a nightly Rust, which is not installed"; fi

fuzz-targets: $(FUZZ_TOOL)
	@for name in $(basename $(notdir $(wildcard tests/fuzz/fuzz_targets/*.rs))); do \
		seeds=tests/fuzz/corpus/$$name; [[ -d $$seeds ]] || seeds=tests/fuzz/corpus/directories; \
		found=$(abspath $(TARGET))/fuzz/$$name; mkdir -p $$found; echo "fuzzing $$name"; \
		$(FUZZ) $$name $$found $$seeds -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
			-print_final_stats=1 2>&1 | tee $$found.log | grep -E "ERROR|panicked|stat::number_of_executed_units" || true; \
		grep -q "^stat::number_of_executed_units" $$found.log && ! grep -q "ERROR: " $$found.log || { tail -60 $$found.log; exit 1; }; \
	done

$(FUZZ_TOOL):
	$(CARGO) install --quiet cargo-fuzz --version 0.13.2 --locked --root $(TARGET)/tools

guarantees: prerequisites release ## the guarantees: their tests, and the rigs at full length; writes the figures into docs/pages/guarantees.md
	$(BIN)/python tests/guarantees.py --write

verify-flips: ## every one-bit flip of a segment of 1 MiB (whole batches: 8,364,664 bits), through the verifier
	$(CARGO) test --locked --release --features plan,inspect,crash-disk --test inspect every_flip -- --ignored --nocapture

bench: ## criterion; every answer is asserted
	$(CARGO) bench --locked --features arrow

bench-append: ## writing and recovery compared with Kafka's own classes (a JVM, Maven); ARGS are those of benches/append/main.rs
	$(CARGO) bench --locked --bench append -- $(ARGS)

bench-compaction: ## compaction compared with Kafka's own cleaner (a JVM, Maven); ARGS are those of benches/compaction.rs
	$(CARGO) bench --locked --bench compaction -- $(ARGS)

bench-kafka: ## every read path compared with Kafka's own classes (a JVM, Maven); ARGS are those of benches/kafka_rows/arguments.rs
	$(CARGO) bench --locked --features arrow --bench kafka_rows -- $(ARGS)

bench-inspect: dist ## verify, rebuilt indexes, dumps, groups and copies, compared with Kafka's own classes (a JVM, Maven)
	$(CARGO) bench --locked --features inspect --bench verify
	$(CARGO) bench --locked --features inspect --bench rebuild
	$(BIN)/python benches/python/dump.py
	$(BIN)/python benches/python/groups.py

bench-sweeps: $(VENV)/.tools ## how costs grow with sizes, drawn as SVG; ARGS are those of benches/support/arguments.rs
	$(CARGO) bench --locked --features arrow --bench sweeps -- $(ARGS)
	$(BIN)/python -B benches/plot.py

bench-cold: ## page faults and reads of look-ups in files that are not in the page cache; ARGS as of bench-sweeps
	$(CARGO) bench --locked --features arrow --bench cold -- $(ARGS)

# Packages that only this bench needs, in a directory of their own. NumPy's other threads would wait in a loop beside the measurement.
bench-python: dist $(VENV)/bench/.installed ## reading from Python compared with other packages; ARGS are those of benches/python/run.py
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(abspath $(VENV))/bench $(BIN)/python benches/python/run.py $(ARGS)

$(VENV)/bench/.installed: benches/python/requirements.txt $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) --requirement $<
	@touch $@

# Spark's Kafka source is measured in the newest Spark for which it is published with all that it needs.
KAFKA_SPARK := $(VENV)/spark-4.2.0
bench-spark: dist dist-jar $(KAFKA_SPARK)/.installed ## reading through Spark, compared with Parquet and Spark's Kafka source; ARGS are those of benches/spark/run.py
	$(BIN)/python benches/spark/run.py --kafka-spark $(KAFKA_SPARK) $(ARGS)

wheel: $(VENV)/.tools dist-jar ## an abi3 wheel in dist/, with the data source in Java (Maven)
	$(BIN)/maturin build --locked --out dist

# The extension module is a file of the same name with other features: cargo links it again for the next build of it.
jar: $(JAR) ## the Spark data source in Java, with the native library inside (a JDK, Maven)

JAR_PROFILE := release
$(JAR): Cargo.toml Cargo.lock $(shell find src -name '*.rs') $(shell find src/jvm -type f)
	$(CARGO) rustc --locked --profile $(JAR_PROFILE) --features jvm --lib --crate-type cdylib -- -C strip=symbols
	mvn -B -q -Dstyle.color=never -f src/jvm/pom.xml package \
		-Dcordwood.library=$(abspath $(TARGET))/$(JAR_PROFILE)/libcordwood.so
	@mkdir -p $(@D)
	mv target/jvm/maven/cordwood-spark.jar $@

# replaces a jar that is quick to build by the same with the optimisations of the wheels
dist-jar:
	rm -f $(JAR)
	$(MAKE) --no-print-directory $(JAR) JAR_PROFILE=dist

fmt: $(VENV)/.tools ## format Rust and Python
	$(CARGO) fmt
	$(BIN)/ruff check --fix --quiet || true
	$(BIN)/ruff format

exhaustive: ## every combination of which `make rust` tries a part, such as every bit with every way to read; ten times the random cases
	CORDWOOD_EXHAUSTIVE=1 $(RUST_TESTS) --profile crash --test rust --test inspect

power-cuts: release ## 500 power cuts each of ext4 and XFS on a loop device (root); five minutes
	CORDWOOD_POWER_CUTS=500 $(PYTEST) --timeout 0 -n 2 -rs -s tests/python/writer/test_power_cuts.py

write-stress: extension ## Spark writes of several processes that are killed at random; two minutes
	CORDWOOD_WRITE_STRESS_SECONDS=100 $(PYTEST) -s tests/python/spark/test_write_stress.py

soak: release ## 20 million records through a writer that is killed every few seconds, with four followers; minutes
	CORDWOOD_SOAK_RECORDS=20000000 $(PYTEST) --timeout 0 -s tests/python/writer/test_soak.py

repair-crashes: ## repairs that lose any set of changes at any step, and many mutated logs; ten minutes
	$(RUST_TESTS) --profile crash --test inspect repair:: -- --ignored

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

# Python files are used in place; Rust is rebuilt, also if the stub changes, which contains its docstrings. Tests use a build that is
# fast to compile and has all assertions; rigs and tests with Kafka use an optimised one; benches measure that of the wheels. Each
# build replaces the others.
STUBS := python/cordwood/_core.pyi $(wildcard python/cordwood/_stubs/*.pyi)
SOURCES := $(VENV)/.tools pyproject.toml Cargo.toml Cargo.lock build.rs $(STUBS) $(shell find src -name '*.rs')
DEVELOP := VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked

BUILDS := $(addprefix $(VENV)/,.extension .release .dist)
$(VENV)/.extension: PROFILE := dev
$(VENV)/.release: PROFILE := release
$(VENV)/.dist: PROFILE := dist

$(BUILDS): $(SOURCES)
	$(DEVELOP) --profile $(PROFILE)
	@rm -f $(BUILDS)
	@touch $@
