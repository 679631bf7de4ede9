# The tests that `make test` does not run: those with other versions of Spark, and the rigs at full length.
# Included by the Makefile.

.PHONY: java java-tests oldest-spark release-check crates guarantees seeded-bugs exhaustive verify-flips loom fuzz fuzz-targets repair-crashes power-cuts soak write-stress java-versions java-spark random-queries

OLDEST_JAVA_SPARK := $(VENV)/spark-4.0.5
SPARKS := $(OLDEST_JAVA_SPARK) $(addprefix $(VENV)/spark-,4.1.4 4.2.1)
DENY_TOOL := $(TARGET)/tools/bin/cargo-deny
empty :=
java: prerequisites release ## the tests of the Spark data source in Java, with the newest Spark and some with the oldest
	@if command -v mvn > /dev/null && command -v javac > /dev/null; then $(MAKE) --no-print-directory java-tests; fi

java-tests: $(JAR) $(OLDEST_JAVA_SPARK)/.installed
	CORDWOOD_SPARKS=$(abspath $(OLDEST_JAVA_SPARK)) $(PYTEST) --numprocesses 2 $(BY_GROUP) --durations 20 -m "java and not many"

# `make python` uses the pinned version; this is the oldest that pyproject.toml allows. Its directory is first
# on the path.
OLDEST_SPARK := 4.2.0
oldest-spark: release $(VENV)/spark-$(OLDEST_SPARK)/.installed ## the tests of shared sources and streams with the oldest Spark
	PYTHONPATH=$(abspath $(VENV))/spark-$(OLDEST_SPARK) $(BIN)/python -m pytest \
		tests/python/spark/test_reuse.py tests/python/spark/test_streams.py

$(VENV)/spark-%/.installed: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) pyspark==$*
	@touch $@

guarantees: prerequisites release ## the guarantees: their tests, and the rigs at full length; writes the figures into docs/pages/guarantees.md
	$(BIN)/python tests/guarantees.py --write

seeded-bugs: ## bugs of tests/seeded, one at a time, in a copy of the tree: the crash tests must detect each; minutes
	$(BIN)/python tests/seeded_bugs.py

exhaustive: ## every combination of which `make rust` tries a part, such as every bit with every way to read; ten times the random cases
	CORDWOOD_EXHAUSTIVE=1 $(RUST_TESTS) --profile crash --test rust --test inspect

verify-flips: ## every one-bit flip of a segment of 1 MiB (whole batches: 8,364,664 bits), through the verifier
	$(RUST_TESTS) --release --test inspect every_flip -- --ignored --nocapture

repair-crashes: ## repairs that lose any set of changes at any step, and many mutated logs; ten minutes
	$(RUST_TESTS) --profile crash --test inspect repair:: -- --ignored

power-cuts: release ## 500 power cuts each of ext4 and XFS on a loop device (root); five minutes
	CORDWOOD_POWER_CUTS=500 $(PYTEST) --timeout 0 -n 2 -rs -s tests/python/writer/test_power_cuts.py

soak: release ## 20 million records through a writer that is killed every few seconds, with four followers; minutes
	CORDWOOD_SOAK_RECORDS=20000000 $(PYTEST) --timeout 0 -s tests/python/writer/test_soak.py

write-stress: extension ## Spark writes of several processes that are killed at random; two minutes
	CORDWOOD_WRITE_STRESS_SECONDS=100 $(PYTEST) -s tests/python/spark/test_write_stress.py

release-check: ## builds the files of a release in dist/ and checks them: descriptions, contents, size; installed and used with each Python; a quarter of an hour
	rm -rf dist
	$(MAKE) --no-print-directory wheel
	$(BIN)/maturin sdist --quiet --out dist
	CARGO_TARGET_DIR=$(abspath $(TARGET)) $(BIN)/python tests/release.py dist/*

crates: $(DENY_TOOL) ## licences, duplicate versions, sources and advisories of all crates (cargo-deny); ARGS="licenses bans sources" needs no network
	$(DENY_TOOL) --locked check $(ARGS)

java-versions: release $(JAR) $(addsuffix /.installed,$(SPARKS)) ## the Spark data source in Java with every version of Spark that it supports
	CORDWOOD_SPARKS=$(subst $(empty) $(empty),:,$(abspath $(SPARKS))) $(PYTEST) tests/python/spark_java/test_versions.py

# With the variable, the tests of the source in Python use the one in Java.
java-spark: prerequisites release $(JAR) ## the tests of the Spark data source in Python, run with the one in Java; half an hour
	CORDWOOD_SPARK_SOURCE=java $(PYTEST) tests/python/spark -m "not (java or python_source)"

random-queries: prerequisites release $(JAR) ## 2,250 random queries through both Spark data sources and Parquet; ten minutes
	$(PYTEST) --timeout 0 tests/python/spark_java/test_random_queries.py

# Tests the shipped skip list and group commit under every interleaving that loom generates. Then a store of
# the skip list is weakened and a check of the group commit is removed, and loom must detect both; otherwise
# the first run proves nothing. The target directory is their own, because the flag rebuilds everything; the
# wrapper rebuilds the crate alone.
LOOM := CARGO_TARGET_DIR=$(TARGET)/loom RUSTFLAGS="--cfg loom" $(CARGO) test --locked --package cordwood --lib --no-default-features models
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

# Each target runs for so many seconds. New inputs are written below target/; those that find a bug belong
# into tests/fuzz/corpus.
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

$(DENY_TOOL):
	$(CARGO) install --quiet cargo-deny --version 0.20.2 --locked --root $(TARGET)/tools
