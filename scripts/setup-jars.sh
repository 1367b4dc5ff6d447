#!/usr/bin/env bash
# setup-jars.sh [FOLDER…]: the jars of each FOLDER/pom.xml in the cache folder, checked against FOLDER/jars.sha256.
# The cache is shared by all clones: ${XDG_CACHE_HOME:-~/.cache}/lakelet/jars, with a folder below it where FOLDER has a file
# `cache` that names one.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lakelet/jars

complete() { (cd "$2" 2>/dev/null && sha256sum --check --status "$1/jars.sha256"); }

fetch() {
  local source_dir=$PWD/$1 jars=$cache
  [ -f "$source_dir/cache" ] && jars=$cache/$(cat "$source_dir/cache")
  complete "$source_dir" "$jars" 2>/dev/null && return
  command -v mvn >/dev/null || scripts/system-packages.sh maven || {
    echo "setup-jars: Maven is needed to fetch jars; install it (Debian: maven)" >&2
    exit 1
  }
  mkdir -p "$jars"
  echo "fetching the jars of $1 with Maven" >&2
  mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums --file "$source_dir/pom.xml" \
    dependency:copy-dependencies -DexcludeTransitive=true -DoutputDirectory="$jars" </dev/null
  complete "$source_dir" "$jars" || {
    echo "setup-jars: the jars in $jars are not those of $1/jars.sha256:" >&2
    (cd "$jars" && sha256sum --check --quiet "$source_dir/jars.sha256" >&2) || true
    exit 1
  }
}

for folder in "${@:-tests/conformance/java}"; do
  fetch "$folder"
done
