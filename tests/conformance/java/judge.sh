#!/usr/bin/env bash
# judge.sh COMMAND...: runs Judge.java (its commands are at the head of it) with the files beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../run-java.sh" "$here" judge -Xmx"${JUDGE_MEMORY:-1g}" \
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED Judge "$@"
