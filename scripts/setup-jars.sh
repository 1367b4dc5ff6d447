#!/usr/bin/env bash
# setup-jars.sh: the jars of tests/conformance/java/pom.xml in the cache folder, checked against jars.sha256.
# The cache is shared by all clones: ${XDG_CACHE_HOME:-~/.cache}/lakelet/jars.
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD/tests/conformance/java
jars=${XDG_CACHE_HOME:-$HOME/.cache}/lakelet/jars
complete() { (cd "$jars" 2>/dev/null && sha256sum --check --status "$source_dir/jars.sha256"); }

complete 2>/dev/null && exit 0

command -v mvn >/dev/null || scripts/system-packages.sh maven || {
  echo "setup-jars: Maven is needed to fetch Paimon's jars; install it (Debian: maven)" >&2
  exit 1
}
mkdir -p "$jars"
echo "fetching Java Paimon's jars with Maven" >&2
mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums --file "$source_dir/pom.xml" \
  dependency:copy-dependencies -DexcludeTransitive=true -DoutputDirectory="$jars" </dev/null
complete || {
  echo "setup-jars: the jars in $jars are not those of tests/conformance/java/jars.sha256:" >&2
  (cd "$jars" && sha256sum --check --quiet "$source_dir/jars.sha256" >&2) || true
  exit 1
}
