#!/usr/bin/env bash
# server.sh FOLDER: runs RestCatalogServer.java (it says what it does), compiled on first use.
# Jars and classes live in the cache folder that all clones share; nothing is written beside the source.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lakelet
jars=$cache/jars/$(cat "$here/cache")
home=$("$here/../../../scripts/setup-java.sh" --print-home) || {
  echo "iceberg-rest: no Java 17 or later with javac (make setup-java)" >&2
  exit 2
}

classpath=
while read -r _ jar; do
  [[ -f $jars/$jar ]] || {
    echo "iceberg-rest: $jar is not in $jars (make setup-conformance)" >&2
    exit 2
  }
  classpath=$classpath:$jars/$jar
done <"$here/jars.sha256"

# The folder is named after what it was compiled from, and appears whole: clones and test workers share it safely.
classes=$cache/iceberg-rest/$(cat "$here"/*.java "$here/jars.sha256" | sha256sum | cut -c1-16)
if [[ ! -d $classes ]]; then
  mkdir -p "$cache/iceberg-rest"
  fresh=$(mktemp -d "$cache/iceberg-rest/.compile-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  "$home/bin/javac" -nowarn -d "$fresh" -cp "$classpath" "$here"/*.java >&2
  # Losing the race to another process is fine: its classes are the same.
  mv -T "$fresh" "$classes" 2>/dev/null || [[ -d $classes ]]
  rm -rf "$fresh"
fi

exec "$home/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -Duser.timezone=UTC -Dsun.net.httpserver.nodelay=true \
  -cp "$classes$classpath" org.apache.iceberg.rest.RestCatalogServer "$@"
