# Korvet Fast: one door for everything. `make` alone prints the list.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# Hundreds of Python processes start in the tests: they shall not all compile what they import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help docs chart release demo demo-spark test test-rust test-python test-spark test-clients test-faults test-legacy test-tools test-bench lint checks format stubs diagrams screenshots reference develop native wheel wheel-install install first-hour first-record tools programs jars drivers tools-spark bench bench-requests bench-instructions bench-check bench-check-ten bench-system bench-spark asv fuzz matrix locks audit kill-loop rolling-restarts group-invariants vectors check-toolchain abuse test-abuse fuzz-live test-fuzz-live simulate producer-rounds producer-outage replication-model replication-rounds faults mutants soak

help:  ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: $(VENV)/.tools-demo wheel  ## build and install the wheel, send 336,776 flights through the broker, compare every value (STORE=redis: over Redis)
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl
	@$(PY) -m examples.flights.demo $(STORE)

test:  ## lint and every test but those of the six targets below: Rust, Python, protocols, stores (KORVET_TEST_REQUIRE=all forbids skips)
	@$(MAKE) --no-print-directory -j 4 develop tools
	@$(MAKE) --no-print-directory -j 2 test-rust test-python
	@$(MAKE) --no-print-directory test-fuzz-live

# Side by side: most Python tests wait, for servers and for clients.
test-rust: checks
	MAKEFLAGS= cargo test --workspace --locked --quiet

PYTHON_TESTS = --ignore=$(FAULT_TESTS) $(SPARK_TESTS:%=--ignore=%) $(LEGACY_TESTS:%=--ignore=%) --ignore=$(TOOLS_TESTS) $(CLIENT_TESTS:%=--ignore=%) $(ALONE:%=--ignore=%) --ignore=$(BENCH_TESTS) --ignore=$(SIZES)

test-python:
	@# pytest compiles each test file with more in it, and keeps that: once here, not in each of the six at the same time;
	@# what cannot be collected is told by the six
	@[ -e tests/protocol/__pycache__ ] || $(PY) -m pytest -q -p no:benchmark --collect-only $(PYTHON_TESTS) >/dev/null || :
	$(PY) -m pytest -p no:benchmark -n 6 --dist worksteal $(PYTHON_TESTS)

# The lint rules that are a test of ours: `checks` runs it, and so does `make test` by that.
SIZES := tests/unit/test_sizes.py

# These measure how long others wait, so nothing else runs beside them.
ALONE := tests/abuse/test_abuse.py tests/abuse/test_fuzz_live.py

test-fuzz-live:
	$(PY) -m pytest -p no:benchmark tests/abuse/test_fuzz_live.py

# Processes of their own that are killed, paused and cut off, and minutes of waiting until what they held is free.
FAULT_TESTS := tests/faults
OTHER_FAULTS = $(filter $(FAULT_TESTS)/%,$(SPARK_TESTS) $(LEGACY_TESTS) $(CLIENT_TESTS))

test-faults: develop tools  ## kill -9, full disks, silent peers, torn files, clocks that jump, over both stores; each fault at least once
	$(PY) -m pytest -p no:benchmark -n 6 --dist worksteal $(FAULT_TESTS) $(OTHER_FAULTS:%=--ignore=%)

# They count instructions and build extensions: minutes of both processors, for who changes the benchmarks.
BENCH_TESTS := tests/bench

test-bench: develop tools  ## the tests of the tools that measure: what counts, compares and draws
	$(PY) -m pytest -p no:benchmark -n 2 --dist worksteal $(BENCH_TESTS)

# Java machines, and rounds against Apache Kafka: a quarter of all that is tested.
CLIENT_TESTS := $(wildcard tests/compat/test_*.py) tests/faults/test_producer_rounds.py

test-clients: develop tools  ## clients and tools that others wrote, in every scenario over both stores; what README and docs say, typed; our producer over Kafka
	$(PY) -m pytest -p no:benchmark -n 6 --dist worksteal $(CLIENT_TESTS)

test-abuse: develop tools  ## every known attack for two seconds, and all together, beside well-behaved clients, over both stores
	$(PY) -m pytest -s -p no:benchmark tests/abuse/test_abuse.py

# Each of the two processes has a Spark of its own.
SPARK_TESTS := tests/compat/spark tests/faults/spark tests/examples/spark
# A test's Spark lives for a minute: compiling its code well would be half of the work.
test-spark: export JDK_JAVA_OPTIONS := -XX:TieredStopAtLevel=1

test-spark: develop tools tools-spark  ## Spark's tests: over both stores, beside its Kafka connector, its older versions, killed in the middle
	$(PY) -m pytest -p no:benchmark -n 2 --dist loadfile $(SPARK_TESTS) --ignore=$(LEGACY_SPARK_TEST)

# Clients of 0.7 run on JVMs of their own and wait for ZooKeeper; Spark reads what they wrote.
LEGACY_SPARK_TEST := tests/compat/spark/test_legacy.py
LEGACY_TESTS := tests/compat/legacy tests/faults/zookeeper tests/faults/test_legacy_kill.py $(LEGACY_SPARK_TEST)

test-legacy: develop tools  ## Kafka 0.7's clients in four languages, their groups over ZooKeeper, kill -9 under them, Spark over their topics
	$(PY) -m pytest -p no:benchmark -n 2 --dist loadfile $(LEGACY_TESTS)

# Java machines and applications that start, are killed, and wait until their sessions have ended.
TOOLS_TESTS := tests/compat/tools

test-tools: develop tools  ## Connect, MirrorMaker 2, Streams, Faust, Quix Streams: run, killed, run again, over files and Redis (STORE=embedded: files)
	@PYTHONPATH=.:tests $(PY) -m compat.drivers programs
	$(PY) -m pytest -p no:benchmark -n 2 --dist worksteal $(TOOLS_TESTS) $(if $(STORE),-k $(STORE))

lint: develop  ## ruff, mypy, import-linter, sizes, stubtest, rustfmt, clippy: all must be clean
	@$(MAKE) --no-print-directory checks

checks:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) -m pytest -q -p no:benchmark $(SIZES)
	$(PY) -m mypy.stubtest korvet_fast._native
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	@# clippy links nothing, so libFuzzer need not be compiled: it is said to be there; with the workspace's own
	@# profile, what the crates have in common with it is not compiled again
	@export CARGO_PROFILE_DEV_DEBUG=line-tables-only CARGO_PROFILE_DEV_OPT_LEVEL=1; for crate in rust/fuzz benchmarks/load; do \
	  cargo fmt --manifest-path $$crate/Cargo.toml --check && \
	  CUSTOM_LIBFUZZER_PATH=$(CURDIR)/target/libFuzzer.a cargo clippy --manifest-path $$crate/Cargo.toml --target-dir target --all-targets --locked --quiet -- -D warnings || exit 1; \
	done

format:  ## rewrite Python and Rust in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all
	@for crate in rust/fuzz benchmarks/load; do cargo fmt --manifest-path $$crate/Cargo.toml; done

develop: $(VENV)/.deps native  ## build the extension into the tree, so that edited Python runs at once
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet

# Apart from installing it, so that make -j compiles while pip fetches.
native: $(VENV)/.pip check-toolchain
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet --skip-install

wheel: $(VENV)/.pip check-toolchain  ## build the wheel people install, into dist/
	@rm -rf dist
	@$(BIN)/maturin build --release --locked --quiet --out dist
	@ls dist

install: wheel  ## compile the package and install it into .venv, with all that it needs
	@$(INSTALL) requirements/package.txt
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl

first-hour: develop tools wheel  ## a new user's first hour, command by command, in a directory of its own with nothing but the wheel
	@PYTHONPATH=.:tests $(PY) -m first_hour.walk dist/korvet_fast-*.whl requirements/demo.txt

first-record:  ## from a clone to a record of one's own, three commands; prints how long each took, compiling included
	@$(PYTHON) tests/first_hour/record.py

RELEASED := build/release

release: wheel $(VENV)/.release  ## wheel and source archive into dist/, checked, and the wheel run in an environment of its own: docs/releasing.md
	@$(BIN)/maturin sdist --out dist 2>&1 | tail -1
	@$(BIN)/twine check --strict dist/*
	@case "$$(uname)" in Linux) $(BIN)/auditwheel show dist/korvet_fast-*.whl;; esac
	@rm -rf $(RELEASED) && $(PYTHON) -m venv $(RELEASED)
	@$(RELEASED)/bin/python -m pip install --quiet --require-hashes --requirement requirements/demo.txt
	@$(RELEASED)/bin/python -m pip install --quiet --no-index --no-deps dist/korvet_fast-*.whl
	@cd $(RELEASED) && bin/korvet-fast --version && bin/korvet-fast demo-cluster
	@ls -l dist

check-toolchain:
	@command -v cargo >/dev/null || { echo "Missing: a Rust toolchain (cargo). Install one, 1.89 or newer, and run this again."; exit 1; }
	@command -v cc >/dev/null || { echo "Missing: a C compiler (cc). Install gcc or clang and run this again."; exit 1; }

# With hashes, and nothing that is not named there: what was tested is what is installed.
INSTALL := $(PY) -m pip install --quiet --require-hashes --requirement

$(VENV)/.pip: requirements/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Missing: Python 3.11 or newer. Name one with make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) $<
	@touch $@

$(VENV)/.tools-demo: requirements/demo.txt $(VENV)/.pip
	@$(INSTALL) $<
	@touch $@

$(VENV)/.tools-demo-spark: requirements/demo-spark.txt $(VENV)/.tools-demo
	@command -v java >/dev/null || { echo "Missing: Java 17 or newer, for Spark. Install a JDK and run this again."; exit 1; }
	@echo "installing PySpark, 450 MB"
	@$(INSTALL) $<
	@touch $@

$(VENV)/.deps: requirements/develop.txt $(VENV)/.pip | check-toolchain
	@echo "installing what the tests and checks need"
	@$(INSTALL) $<
	@touch $@

$(VENV)/.release: requirements/release.txt $(VENV)/.pip
	@$(INSTALL) $<
	@touch $@

$(VENV)/.locks: requirements/locks.txt $(VENV)/.pip
	@$(INSTALL) $<
	@touch $@

LOCK = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command "make locks" --output-file

locks: $(VENV)/.locks  ## lock the Python packages anew (requirements/), in the newest versions that pyproject.toml allows
	@$(LOCK) requirements/develop.txt pyproject.toml --group lint --group docs --group test --group demo --group demo-spark
	@$(LOCK) requirements/package.txt pyproject.toml --constraint requirements/develop.txt
	@$(LOCK) requirements/demo.txt pyproject.toml --group demo --constraint requirements/develop.txt
	@$(LOCK) requirements/demo-spark.txt pyproject.toml --group demo --group demo-spark --constraint requirements/develop.txt
	@$(LOCK) requirements/build.txt --group build
	@$(LOCK) requirements/release.txt --group release --constraint requirements/develop.txt
	@$(LOCK) requirements/locks.txt --group locks --constraint requirements/develop.txt
	@for wanted in requirements/*.in; do $(LOCK) $${wanted%.in}.txt $$wanted || exit 1; done

audit: $(VENV)/.locks check-toolchain  ## ask the databases of known holes about everything that is locked, and look at the licences
	@command -v cargo-deny >/dev/null || cargo install --locked --quiet cargo-deny
	@PATH="$(CURDIR)/$(BIN):$$PATH" .ci/audit

stubs: $(VENV)/.deps  ## write korvet_fast/_native.pyi anew from the Rust doc comments
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin generate-stubs --quiet --out build/stubs
	@cp build/stubs/korvet_fast/_native.pyi korvet_fast/_native.pyi
	@perl -0pi -e 's/(:\n\s+""")\n\s+([^\n]+)\n\s+"""(?=\n)/$$1$$2"""/g' korvet_fast/_native.pyi
	@$(BIN)/ruff check --fix --quiet korvet_fast/_native.pyi
	@$(BIN)/ruff format --quiet korvet_fast/_native.pyi

vectors: develop tools  ## record real clients' requests again, against Apache Kafka and against ours
	PYTHONPATH=.:tests $(PY) -m vectors.record kafka korvet

bench: develop  ## the codec: plain Python, the same compiled by Cython, Rust, side by side; then criterion
	$(PY) -m benchmarks.codec
	cargo bench --locked --package korvet-benches

bench-requests: develop  ## each API from bytes in to bytes out over a store that discards, against its budget
	$(PY) -m benchmarks.requests

bench-instructions: develop tools  ## what every native call and every request takes, counted by callgrind
	$(PY) -m benchmarks.check --alone

bench-check: develop tools  ## the same, compared with an earlier commit (BASE=commit): ends badly if anything takes 3 % more
	$(PY) -m benchmarks.check $(if $(BASE),--base $(BASE))

bench-check-ten: develop tools  ## an unchanged tree compared with itself, ten times in a row
	KORVET_TEST_CHECKS=10 $(PY) -m pytest -q -p no:benchmark tests/bench/test_bench_check.py -k unchanged

bench-spark: $(VENV)/.deps wheel-install tools tools-spark  ## Spark over ours, beside its own Kafka connector over ours and over Apache Kafka
	$(PY) -m benchmarks.spark
	$(PY) -m benchmarks.spark.start

COMMITS ?= 4

asv: develop tools  ## speed over the last commits (COMMITS=4) as graphs in .cache/asv/html, opened in a browser
	$(PY) -m benchmarks.history --commits $(COMMITS)
	KORVET_TEST_ASV_PAGE=$(CURDIR)/.cache/asv/html $(PY) -m pytest -q -p no:benchmark tests/bench/test_asv.py

bench-system: $(VENV)/.deps wheel-install tools  ## the system: against Apache Kafka and bare relays to Redis on this machine, in turns, one table in a quarter of an hour
	$(PY) -m benchmarks.system --rounds 2 --seconds 0.7

SIMULATIONS ?= 5000
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := frames schema resp batch messages decompress stream lines arguments

fuzz: develop  ## each fuzz target for a minute (FUZZ_SECONDS=60), from good input of every kind; then any request of Kafka 0.7
	@cargo +nightly --version >/dev/null 2>&1 || { echo "Missing: nightly Rust. rustup toolchain install nightly, and run this again."; exit 1; }
	@command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
	@cargo run --locked --quiet --manifest-path rust/fuzz/Cargo.toml --example seeds -- rust/fuzz/corpus
	@for target in $(FUZZ_TARGETS); do \
	  echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
	  cargo +nightly fuzz run --fuzz-dir rust/fuzz $$target -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_funcs=0 -print_final_stats=1; \
	done
	KORVET_TEST_HYPOTHESIS=thorough $(PY) -m pytest -q -p no:benchmark --timeout 3600 --hypothesis-show-statistics \
	  tests/protocol/test_legacy_requests.py

kill-loop: develop  ## fifty times kill -9 under four idempotent producers, of a broker, then of workers and their parent: nothing lost or doubled
	KORVET_TEST_KILLS=50 $(PY) -m pytest -s tests/faults/test_kill_under_load.py tests/faults/test_workers.py -k "doubled or group"

rolling-restarts: develop  ## twenty rolling restarts of three brokers over one Redis: nothing lost or doubled, no group rebalances
	KORVET_TEST_ROLLS=20 $(PY) -m pytest -p no:benchmark -n 2 tests/faults/redis/test_brokers.py tests/compat/test_groups_several.py -k "rolling or in_turn"

ROUNDS ?= 20

replication-rounds: develop  ## twenty rounds of three brokers over files: leaders killed, cut off, paused, moved, full disks; nothing lost (ROUNDS=20)
	KORVET_TEST_ROUNDS=$(ROUNDS) $(PY) -m pytest -s -p no:benchmark tests/faults/replication/test_rounds.py

faults: develop tools  ## all the faults of tests/faults/table.py, ROUNDS=20 times, going on where it was stopped; prints and writes docs/reliability.md (FAULT="F04 F07": these)
	PYTHONPATH=.:tests $(PY) -m faults.campaign $(ROUNDS) $(FAULT)

mutants: develop tools  ## break the product in one place after the other, and print which fault test notices; one that none notices ends it (MUTANT=name)
	PYTHONPATH=.:tests $(PY) -m faults.mutants.run $(MUTANT)

HOURS ?= 1

soak: develop tools  ## both stores, all doors, groups and streams of Spark, into files and into a topic, at work for HOURS=1, faults at random from a printed seed (SEED=...); draws results/soak.png
	PYTHONPATH=.:tests:python $(PY) -m soak.run $(HOURS) $(SEED)

matrix: develop tools  ## every foreign client in every scenario over both stores; prints and writes docs/compatibility.md
	KORVET_TEST_MATRIX=full $(PY) -m pytest -q -n 4 tests/compat/test_matrix.py tests/compat/test_secure_matrix.py

group-invariants: develop  ## both group protocols under whatever can happen to them, 3,000 new histories each; prints how many were tried
	KORVET_TEST_HYPOTHESIS=thorough $(PY) -m pytest -p no:benchmark -n 2 --timeout 3600 --hypothesis-show-statistics \
	  tests/unit/core/groups/classic/test_stateful.py tests/unit/core/groups/consumer/test_stateful.py

simulate: develop  ## 5,000 histories of failures of the producer, under a virtual clock (SIMULATIONS=5000)
	KORVET_TEST_SIMULATIONS=$(SIMULATIONS) $(PY) -m pytest -p no:benchmark --timeout 3600 --hypothesis-show-statistics \
	  tests/unit/client/producer/test_simulation.py tests/unit/client/producer/test_transaction_simulation.py

PRODUCER_ROUNDS ?= 20

producer-rounds: develop tools  ## twenty rounds each of our producer against brokers killed, paused, cut off: files, Redis, three, Apache Kafka
	KORVET_TEST_PRODUCER_ROUNDS=$(PRODUCER_ROUNDS) $(PY) -m pytest -s -p no:benchmark tests/faults/test_producer_rounds.py

producer-outage: develop  ## ten minutes without a broker, the producer's memory full: what the process takes stays the same
	KORVET_TEST_OUTAGE=600 $(PY) -m pytest -s -p no:benchmark -p no:logging tests/faults/test_producer_outage.py

HISTORIES ?= 2000

replication-model: develop  ## 2,000 histories of leaders and followers: lost messages, crashes, moves (HISTORIES=2000)
	KORVET_TEST_REPLICATION=$(HISTORIES) $(PY) -m pytest -p no:benchmark --timeout 3600 tests/unit/core/replication

chart: $(VENV)/.deps  ## draw six figures of the newest stored result of bench-system: docs/images/speed.svg
	@$(PY) -m benchmarks.chart

SITE := build/site

docs: $(VENV)/.deps  ## build the documentation as a site, build/site/index.html; a broken link ends it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(SITE)
	@echo "file://$(CURDIR)/$(SITE)/index.html"

screenshots: develop  ## write the pictures of the page anew (docs/images/page-*.png), as the browser test sees it
	@KORVET_TEST_SCREENSHOTS=docs/images $(PY) -m pytest -q -p no:benchmark tests/protocol/test_page.py -k fits

reference: develop  ## write docs/cli.md, docs/configuration.md and docs/metrics.md anew from the commands and the tables in the code
	@$(PY) -m docs.reference

diagrams: develop  ## draw docs/groups.md, docs/leadership.md and docs/images/overview.svg anew from the tables in the code
	@$(PY) -m docs.overview
	@$(PY) -m korvet_fast.core.groups.diagram > docs/groups.md
	@$(PY) -m korvet_fast.core.partition.diagram > docs/leadership.md

# Spark's workers begin in this directory, and would find the package here before the installed one: it needs its extension.
demo-spark: $(VENV)/.tools-demo-spark native wheel  ## the second demo: the same flights as files, through a topic and Spark, into Parquet and a picture
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl
	@$(PY) -m examples.flights.spark

wheel-install: wheel
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl

# Foreign programs by the packages of Debian that have them.
TOOLS := kcat redis-server redis-cli valgrind chromium chromedriver nc promtool
ZOOKEEPER := /usr/share/java/zookeeper.jar
PACKAGES := kcat redis-server valgrind chromium chromium-driver zookeeper netcat-openbsd prometheus

tools: programs jars drivers  ## foreign programs the tests use: kcat, redis-server, valgrind, nc, promtool, ZooKeeper and a browser from Debian, Kafka's jars from Maven, clients

programs:
	@command -v $(TOOLS) >/dev/null && [ "$$(command -v $(TOOLS) | wc -l)" = "$(words $(TOOLS))" ] && [ -e $(ZOOKEEPER) ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(PACKAGES) >/dev/null; } || \
	  echo "not all of $(TOOLS) and ZooKeeper are here, and they cannot be installed: their tests will be skipped"

jars: $(VENV)/.pip
	@$(PY) -c "from benchmarks.peers.kafka import jars; jars.classpath()" || echo "Kafka's jars are not here: the tests of its Java tools will be skipped"

# Before the tests: what has to be fetched and compiled for the first time would be more than a test's time.
drivers: $(VENV)/.deps
	@PYTHONPATH=.:tests $(PY) -m compat.drivers

tools-spark: $(VENV)/.pip
	@$(PY) -m benchmarks.peers.spark.environment || echo "Spark's other versions are not here: their tests will be skipped"

abuse: develop tools  ## every known attack beside well-behaved clients, over both stores; prints the table, writes docs/abuse.md
	KORVET_TEST_ABUSE=full $(PY) -m pytest -q -s -p no:benchmark tests/abuse/test_abuse.py

fuzz-live: develop tools  ## whole requests made worse, at a live broker, for a minute (FUZZ_SECONDS=60) over each store
	KORVET_TEST_FUZZ_SECONDS=$(FUZZ_SECONDS) $(PY) -m pytest -q -s -p no:benchmark tests/abuse/test_fuzz_live.py
