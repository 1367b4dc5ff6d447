#!/usr/bin/env bash
# run-java.sh FOLDER NAME [JAVA-OPTION…] CLASS ARGUMENT…: runs the Java program in FOLDER, compiled on first use.
# Jars and classes live in the cache folder that all clones share (see scripts/setup-jars.sh), the classes below NAME; nothing is
# written beside the source.
set -euo pipefail
source_dir=$1 name=$2
shift 2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lakelet
jars=$cache/jars
[[ -f $source_dir/cache ]] && jars=$jars/$(cat "$source_dir/cache")
home=$("$(dirname "$0")/../../scripts/setup-java.sh" --print-home) || {
  echo "$name: no Java 17 or later with javac (make setup-java)" >&2
  exit 2
}

classpath=
while read -r _ jar; do
  [[ -f $jars/$jar ]] || {
    echo "$name: $jar is not in $jars (make setup-conformance)" >&2
    exit 2
  }
  classpath=$classpath:$jars/$jar
done <"$source_dir/jars.sha256"

# The folder is named after what it was compiled from, and appears whole: clones and test workers share it safely.
classes=$cache/$name/$(cat "$source_dir"/*.java "$source_dir/jars.sha256" | sha256sum | cut -c1-16)
if [[ ! -d $classes ]]; then
  mkdir -p "$cache/$name"
  fresh=$(mktemp -d "$cache/$name/.compile-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  "$home/bin/javac" -nowarn -d "$fresh" -cp "$classpath" "$source_dir"/*.java >&2
  # Losing the race to another process is fine: its classes are the same.
  mv -T "$fresh" "$classes" 2>/dev/null || [[ -d $classes ]]
  rm -rf "$fresh"
fi

# Without the second compiler, which does not earn back in minutes what it takes from two cores.
exec "$home/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC -cp "$classes$classpath" "$@"
