#!/usr/bin/env bash
# Finds Redis's server, which the tests of the cluster run against, or installs Debian's package when root.
# Where it cannot be had these tests are skipped; with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v redis-server >/dev/null || scripts/system-packages.sh redis-server || {
    echo "install-redis: there is no Redis; the tests that need it will be skipped (Debian: redis-server)" >&2
    [ "${CI:-}" = "true" ] && exit 1
    exit 0
}
command -v redis-server
