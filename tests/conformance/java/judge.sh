#!/usr/bin/env bash
# judge.sh COMMAND...: runs Judge.java (its commands are at the head of it), compiled on first use with the files beside it.
# Jars and classes live in the cache folder that all clones share; nothing is written beside the source.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lakelet
jars=$cache/jars
home=$("$here/../../../scripts/setup-java.sh" --print-home) || {
  echo "judge: no Java 17 or later with javac (make setup-java)" >&2
  exit 2
}

classpath=
while read -r _ jar; do
  [[ -f $jars/$jar ]] || {
    echo "judge: $jar is not in $jars (make setup-conformance)" >&2
    exit 2
  }
  classpath=$classpath:$jars/$jar
done <"$here/jars.sha256"

# The folder is named after what it was compiled from, and appears whole: clones and test workers share it safely.
classes=$cache/judge/$(cat "$here"/*.java "$here/jars.sha256" | sha256sum | cut -c1-16)
if [[ ! -d $classes ]]; then
  mkdir -p "$cache/judge"
  fresh=$(mktemp -d "$cache/judge/.compile-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  "$home/bin/javac" -nowarn -d "$fresh" -cp "$classpath" "$here"/*.java >&2
  # Losing the race to another process is fine: its classes are the same.
  mv -T "$fresh" "$classes" 2>/dev/null || [[ -d $classes ]]
  rm -rf "$fresh"
fi

exec "$home/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx"${JUDGE_MEMORY:-1g}" -Duser.timezone=UTC \
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
  -cp "$classes$classpath" Judge "$@"
