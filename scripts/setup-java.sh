#!/usr/bin/env bash
# setup-java.sh [--print-home]: makes sure that Java 17 or later with a compiler is there.
# With --print-home nothing is installed; the Java home found is printed, or the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

# The home of the first Java that is new enough and has javac: JAVA_HOME, the PATH, then Debian's folders.
java_home() {
  local home version
  for home in "${JAVA_HOME:-}" "$(home_on_path)" /usr/lib/jvm/*; do
    [[ -n $home && -x $home/bin/java && -x $home/bin/javac ]] || continue
    version=$("$home/bin/javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
    if [[ -n $version ]] && ((version >= 17)); then
      echo "$home"
      return
    fi
  done
  return 1
}

home_on_path() {
  local javac
  javac=$(command -v javac) && dirname "$(dirname "$(readlink -f "$javac")")" || true
}

if [[ ${1:-} == --print-home ]]; then
  java_home
  exit
fi

java_home >/dev/null || {
  # Debian releases differ in the newest Java they carry; the default one is 17 or later since Debian 12.
  scripts/system-packages.sh openjdk-17-jre-headless openjdk-17-jdk-headless \
    || scripts/system-packages.sh default-jdk-headless || true
  java_home >/dev/null
} || {
  echo "setup-java: no Java 17 or later with javac found; install a JDK (Debian: openjdk-17-jdk-headless), or set JAVA_HOME" >&2
  exit 1
}
