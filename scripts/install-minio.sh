#!/usr/bin/env bash
# Finds MinIO, which the S3 tests run against, or builds it once into the cache folder.
# Prints its path. Where it cannot be had the tests on MinIO are skipped; with CI=true that is a failure.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/lakelet/bin"

if command -v minio >/dev/null 2>&1; then
    command -v minio
    exit 0
fi
if [ -x "$cache/minio" ]; then
    echo "$cache/minio"
    exit 0
fi

give_up() {
    echo "install-minio: $1; the tests on MinIO will be skipped." >&2
    echo "install-minio: put \`minio\` on the PATH or at $cache/minio to run them." >&2
    [ "${CI:-}" = "true" ] && exit 1
    exit 0
}

go=$(command -v go || true)
[ -z "$go" ] && [ -x /usr/local/go/bin/go ] && go=/usr/local/go/bin/go
[ -z "$go" ] && give_up "there is no minio and no Go to build it with"

mkdir -p "$cache"
echo "install-minio: building MinIO with Go, which takes some minutes the first time" >&2
# Built beside the final name and moved there: an interrupted build never looks like a finished one.
building=$(mktemp -d "$cache/.building-XXXXXX")
trap 'rm -rf "$building"' EXIT
GOBIN="$building" "$go" install github.com/minio/minio@latest >&2 || give_up "Go could not build MinIO"
mv "$building/minio" "$cache/minio"
echo "$cache/minio"
