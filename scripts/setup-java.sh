#!/usr/bin/env bash
# setup-java.sh [--runtime] [--print-home]: makes sure that Java 17 or later with a compiler is there.
# With --runtime the compiler is not needed (Spark does without). With --print-home nothing is installed; the Java
# home found is printed, or the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=javac packages="openjdk-17-jre-headless openjdk-17-jdk-headless" default=default-jdk-headless what="a JDK" with=" with javac"
print=false
for argument in "$@"; do
  case $argument in
    --runtime) tool=java packages=openjdk-17-jre-headless default=default-jre-headless what="a Java runtime" with="" ;;
    --print-home) print=true ;;
    *) echo "setup-java: unknown argument $argument" >&2 && exit 2 ;;
  esac
done

# The home of the first Java that is new enough and has the tool: JAVA_HOME, the PATH, then Debian's folders.
java_home() {
  local home version
  for home in "${JAVA_HOME:-}" "$(home_on_path)" /usr/lib/jvm/*; do
    [[ -n $home && -x $home/bin/java && -x $home/bin/$tool ]] || continue
    version=$("$home/bin/$tool" -version 2>&1 | sed -nE 's/^(javac |[a-z]+ version ")([0-9]+).*/\2/p' | head -n 1)
    if [[ -n $version ]] && ((version >= 17)); then
      echo "$home"
      return
    fi
  done
  return 1
}

home_on_path() {
  local found
  found=$(command -v "$tool") && dirname "$(dirname "$(readlink -f "$found")")" || true
}

if $print; then
  java_home
  exit
fi

java_home >/dev/null || {
  # Debian releases differ in the newest Java they carry; the default one is 17 or later since Debian 12.
  # shellcheck disable=SC2086
  scripts/system-packages.sh $packages || scripts/system-packages.sh "$default" || true
  java_home >/dev/null
} || {
  echo "setup-java: no Java 17 or later$with found; install $what (Debian: ${packages##* }), or set JAVA_HOME" >&2
  exit 1
}
