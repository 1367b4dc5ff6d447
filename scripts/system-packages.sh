#!/usr/bin/env bash
# system-packages.sh PACKAGE...: installs Debian packages when that is possible without asking anybody.
# Exit status 1, without a message, when it is not: the caller knows best what to tell the user.
set -euo pipefail
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || exit 1
echo "installing $* with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Java's packages on slim images fail to configure without this folder.
mkdir -p /usr/share/man/man1
if ! { apt-get update && apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
