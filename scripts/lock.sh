#!/usr/bin/env bash
# lock.sh UV [--upgrade]: regenerates the lock files. They carry versions and hashes, never an index address.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$1
shift
compile=("$uv" pip compile --quiet --universal --generate-hashes --no-annotate --no-emit-index-url
  --no-emit-find-links --custom-compile-command "make lock")

"${compile[@]}" "$@" --python-version 3.11 --group dev -o requirements-dev.lock pyproject.toml
# The runtime lock is the part of the development lock that Lakelet itself needs.
"${compile[@]}" "$@" --python-version 3.11 -c requirements-dev.lock -o requirements.lock pyproject.toml
# pypaimon needs an Arrow too old for Lakelet, so it lives in an environment, and a lock, of its own.
pypaimon=tests/conformance/pypaimon
"${compile[@]}" "$@" --python-version 3.11 -o "$pypaimon/requirements.lock" "$pypaimon/requirements.in"
# Iceberg's runtime is made for an older Spark than Lakelet's, DuckDB's extension for an older DuckDB.
iceberg=tests/conformance/iceberg_spark
"${compile[@]}" "$@" --python-version 3.11 -o "$iceberg/requirements.lock" "$iceberg/requirements.in"
