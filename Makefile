# Korvet Fast: one door for everything. `make` alone prints the list.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help demo test lint format stubs develop wheel tools bench bench-peers bench-codec fuzz kill-loop vectors check-toolchain

help:  ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: $(VENV)/.tools-demo wheel  ## build and install the wheel, send 336,776 flights through the broker, compare every value
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl
	@$(PY) benchmarks/demo.py

test: lint tools  ## lint, then every test: Rust, Python, real clients, faults (KORVET_TEST_REQUIRE=all forbids skips)
	cargo test --workspace --quiet
	$(PY) -m pytest

lint: develop  ## ruff, mypy, import-linter, stubtest, rustfmt, clippy: all must be clean
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) -m mypy.stubtest korvet_fast._native
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

format:  ## rewrite Python and Rust in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

develop: $(VENV)/.deps  ## build the extension into the tree, so that edited Python runs at once
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

wheel: $(VENV)/.pip check-toolchain  ## build the wheel people install, into dist/
	@rm -rf dist
	@$(BIN)/maturin build --release --quiet --out dist
	@ls dist

check-toolchain:
	@command -v cargo >/dev/null || { echo "Missing: a Rust toolchain (cargo). Install one, 1.89 or newer, and run this again."; exit 1; }
	@command -v cc >/dev/null || { echo "Missing: a C compiler (cc). Install gcc or clang and run this again."; exit 1; }

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Missing: Python 3.11 or newer. Name one with make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --upgrade "pip>=25.1" "maturin>=1.9,<2"
	@touch $@

$(VENV)/.tools-demo: $(VENV)/.pip pyproject.toml
	@$(BIN)/pip install --quiet "click>=8.1" "rich>=13" "uvloop>=0.21"
	@$(BIN)/pip install --quiet --group demo
	@touch $@

$(VENV)/.deps: $(VENV)/.pip pyproject.toml | check-toolchain
	@echo "installing what the tests and checks need"
	@$(BIN)/pip install --quiet "click>=8.1" "rich>=13" "uvloop>=0.21"
	@$(BIN)/pip install --quiet --group lint --group test --group demo
	@touch $@

kill-loop: develop  ## fifty times kill -9 under four idempotent producers, with restarts: nothing lost or doubled
	KORVET_TEST_KILLS=50 $(PY) -m pytest -s tests/faults/test_kill_under_load.py

wheel-install: wheel
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/korvet_fast-*.whl

tools: $(VENV)/.deps  ## foreign programs the tests use: kcat from Debian, Kafka's jars from Maven
	@command -v kcat >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq kcat >/dev/null; } || \
	  echo "kcat is not here and cannot be installed: its tests will be skipped"
	@$(PY) -c "from benchmarks.peers.kafka import jars; jars.classpath()" || echo "Kafka's jars are not here: the tests of its Java tools will be skipped"
