#!/usr/bin/env bash
# Finds PostgreSQL's server, which the tests of change events run against, or installs Debian's package when root.
# Where it cannot be had these tests are skipped; with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

found() { command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1; }

[ -n "$(found)" ] || scripts/system-packages.sh postgresql || {
    echo "install-postgres: there is no PostgreSQL; the tests that need it will be skipped (Debian: postgresql)" >&2
    [ "${CI:-}" = "true" ] && exit 1
    exit 0
}
found
