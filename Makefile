# Everything a developer or CI does, one target each. `make` alone lists them.
#
# Every target sets up what it needs by itself and remembers that in stamp files, so the second run is quick.
# Nothing here uses sudo: system packages are installed only when the user is root on Debian, otherwise a
# message names what is missing. Registries are whatever pip, Maven, Go and apt are configured to use.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Compiled modules are kept, also where the environment asks for none: every worker and every child process loads them again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYPAIMON_STAMP := .venv-pypaimon/.installed
PYPAIMON_LOCK := tests/conformance/pypaimon/requirements.lock
ICEBERG_STAMP := .venv-iceberg/.installed
ICEBERG_LOCK := tests/conformance/iceberg_spark/requirements.lock

PYTEST_WORKERS ?= 2
# Tests that talk to other processes leave a processor idle while they wait: one worker more than there are processors.
TEST_WORKERS ?= 3
PYTEST_ARGS ?=
# The tests of one file, and all that share a Spark session or a Java process, stay on one worker (tests/tiers/schedule.py).
PYTEST := $(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadfile
TEST := $(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile
# What `make test` gets besides; CI leaves out what `make check` has just run.
TEST_ARGS ?=
# The part of the random examples that `make check` and `make test` draw.
SHARE ?= 0.16
# Where the random examples of `make test-all` begin; it prints the number, which repeats them.
ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
# The commit that chooses the slice, and the seconds within which a slice begins its last test.
SLICE ?= $(shell git rev-parse HEAD 2>/dev/null || echo none)
SLICE_SECONDS ?= 540
# A zone that is no whole number of hours away from UTC, so that nothing is right there by luck.
SECOND_ZONE ?= Asia/Kolkata
SOAK_ARGS ?=
BENCH_ARGS ?=

.PHONY: help setup setup-java setup-services setup-conformance demo check test test-slice test-all bench soak fmt lock clean

help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make TARGET\n"} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- set-up

setup: $(STAMP) ## Make .venv with the locked packages and Lakelet itself, editable.
	@:

$(STAMP): pyproject.toml requirements-dev.lock scripts/make-venv.sh scripts/system-packages.sh
	@scripts/make-venv.sh $(VENV) requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

setup-java: ## Find Java 17 or later with javac, or install it from Debian's packages when root.
	@scripts/setup-java.sh

setup-services: setup-java ## Get the servers the integration tests talk to (MinIO, Kafka, PostgreSQL, Redis; SeaweedFS comes with .venv).
	@bash scripts/install-minio.sh
	bash scripts/install-postgres.sh
	bash scripts/install-redis.sh
	scripts/setup-jars.sh tests/spark/kafka

setup-conformance: $(PYPAIMON_STAMP) $(ICEBERG_STAMP) setup-java ## Get the other engines: Java Paimon, pypaimon, Iceberg's Spark and REST catalog, DuckDB's Iceberg.
	@scripts/setup-jars.sh tests/conformance/java tests/spark/s3a tests/conformance/iceberg_spark tests/conformance/iceberg_rest

$(PYPAIMON_STAMP): $(PYPAIMON_LOCK) scripts/make-venv.sh | $(STAMP)
	@scripts/make-venv.sh .venv-pypaimon $(PYPAIMON_LOCK)
	touch $@

$(ICEBERG_STAMP): $(ICEBERG_LOCK) scripts/make-venv.sh | $(STAMP)
	@scripts/make-venv.sh .venv-iceberg $(ICEBERG_LOCK)
	touch $@

# ---------------------------------------------------------------- daily work

demo: setup ## Show what Lakelet can do, on a warehouse of its own; Spark needs Java, which is found or installed.
	@scripts/setup-java.sh --runtime
	JAVA_HOME=$$(scripts/setup-java.sh --runtime --print-home) $(BIN)/lakelet demo

fmt: setup ## Format the code and fix what ruff can fix.
	@$(BIN)/ruff format
	$(BIN)/ruff check --fix

check: setup ## Format, lint, types, imports, cheap unit tests, tidy tests; under two minutes.
	@scripts/step.sh "format" $(BIN)/ruff format --check --quiet --output-format concise
	scripts/step.sh "lint" $(BIN)/ruff check --quiet --output-format concise
	scripts/step.sh "types" $(BIN)/mypy
	scripts/step.sh "imports" $(BIN)/lint-imports --no-cache --no-logo
	LAKELET_CASES=$(SHARE) scripts/step.sh "unit and tidy tests" $(PYTEST) -q --depth check tests/unit tests/tidy $(PYTEST_ARGS)

test: setup ## All set-up, then every capability and every peer once, times in a second zone too. Without CI=true, what cannot be had is skipped.
	@scripts/optional-setup.sh setup-conformance setup-services
	export JAVA_HOME=$$(scripts/setup-java.sh --runtime --print-home || true) LAKELET_CASES=$(SHARE)
	scripts/step.sh "tests" $(TEST) --depth test $(TEST_ARGS) $(PYTEST_ARGS)
	TZ=$(SECOND_ZONE) scripts/step.sh "tests in $(SECOND_ZONE)" \
	  $(PYTEST) --depth test --zone-tests tests/unit tests/property tests/sql $(PYTEST_ARGS)

test-slice: setup ## A part of what `make test` leaves out, chosen by the commit SLICE=, within ten minutes.
	@scripts/optional-setup.sh setup-conformance setup-services
	export JAVA_HOME=$$(scripts/setup-java.sh --runtime --print-home || true)
	scripts/slice.sh "$(SLICE)" "$(SECOND_ZONE)" $(PYTEST) --slice "$(SLICE)" --within $(SLICE_SECONDS) $(PYTEST_ARGS)

test-all: setup ## Everything at full depth in both zones, random examples from a new SEED=, which is printed; hours.
	@scripts/optional-setup.sh setup-conformance setup-services
	echo "== to repeat these examples: make test-all SEED=$(SEED)"
	export JAVA_HOME=$$(scripts/setup-java.sh --runtime --print-home || true) LAKELET_SEED=$(SEED)
	scripts/step.sh "all tests" $(PYTEST) --hypothesis-seed $(SEED) $(PYTEST_ARGS)
	TZ=$(SECOND_ZONE) scripts/step.sh "all tests in $(SECOND_ZONE)" $(PYTEST) --hypothesis-seed $(SEED) $(PYTEST_ARGS)
	LAKELET_ENABLE_TIERED_CACHE=false scripts/step.sh "tests without the metadata cache" \
	  $(PYTEST) --depth test --without-cache --hypothesis-seed $(SEED) $(PYTEST_ARGS)

bench: setup $(PYPAIMON_STAMP) ## Measure against peers in the same run; writes JSON results.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --requirements benchmarks/requirements.txt
	@$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

soak: setup ## The long random runs at full length.
	@scripts/optional-setup.sh setup-conformance setup-services
	export JAVA_HOME=$$(scripts/setup-java.sh --runtime --print-home || true)
	LAKELET_SOAK=1 $(BIN)/pytest -m soak --timeout 0 $(SOAK_ARGS)

lock: setup ## Regenerate the lock files from pyproject.toml (UPGRADE=1 takes newer versions).
	@scripts/lock.sh $(BIN)/uv $(if $(UPGRADE),--upgrade)

clean: ## Remove what the targets above made in this folder (caches outside it stay).
	@rm -rf .venv .venv-pypaimon .venv-iceberg .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
