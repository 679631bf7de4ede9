# The benches: benches/README.md describes them. Included by the Makefile.

BENCH := $(CARGO) bench --locked --package cordwood-benches $(CORE)

.PHONY: bench bench-append bench-compaction bench-kafka bench-inspect bench-sweeps bench-cold bench-python bench-spark dist-jar

bench: ## criterion; every answer is asserted
	$(BENCH)

bench-append: ## writing and recovery compared with Kafka's own classes (a JVM, Maven); ARGS are those of benches/append/main.rs
	$(BENCH) --bench append -- $(ARGS)

bench-compaction: ## compaction compared with Kafka's own cleaner (a JVM, Maven); ARGS are those of benches/compaction.rs
	$(BENCH) --bench compaction -- $(ARGS)

bench-kafka: ## every read path compared with Kafka's own classes (a JVM, Maven); ARGS are those of benches/kafka_rows/arguments.rs
	$(BENCH) --bench kafka_rows -- $(ARGS)

bench-inspect: dist ## verify, rebuilt indexes, dumps, groups and copies, compared with Kafka's own classes (a JVM, Maven)
	$(BENCH) --bench verify
	$(BENCH) --bench rebuild
	$(BIN)/python benches/python/dump.py
	$(BIN)/python benches/python/groups.py

bench-sweeps: $(VENV)/.tools ## how costs grow with sizes, drawn as SVG; ARGS are those of benches/support/arguments.rs
	$(BENCH) --bench sweeps -- $(ARGS)
	$(BIN)/python -B benches/plot.py

bench-cold: ## page faults and reads of look-ups in files that are not in the page cache; ARGS as of bench-sweeps
	$(BENCH) --bench cold -- $(ARGS)

# Packages that only this bench needs, in a directory of their own. NumPy's other threads would wait in a loop
# beside the measurement.
bench-python: dist $(VENV)/bench/.installed ## reading from Python compared with other packages; ARGS are those of benches/python/run.py
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(abspath $(VENV))/bench $(BIN)/python benches/python/run.py $(ARGS)

$(VENV)/bench/.installed: benches/python/requirements.txt $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) --requirement $<
	@touch $@

# Spark's Kafka source is measured in the newest Spark for which it is published with all that it needs.
KAFKA_SPARK := $(VENV)/spark-4.2.0
bench-spark: dist dist-jar $(KAFKA_SPARK)/.installed ## reading through Spark, compared with Parquet and Spark's Kafka source; ARGS are those of benches/spark/run.py
	$(BIN)/python benches/spark/run.py --kafka-spark $(KAFKA_SPARK) $(ARGS)

# replaces a jar that is quick to build by the same with the optimisations of the wheels
dist-jar:
	rm -f $(JAR)
	$(MAKE) --no-print-directory $(JAR) JAR_PROFILE=dist
