#!/usr/bin/env bash
# slice.sh COMMIT ZONE COMMAND...: runs the command with the random seed that the commit gives. For one commit of two it runs in
# ZONE, where it takes tests that need no other engine. The same commit gives the same seed and zone everywhere.
set -euo pipefail
commit=$1 zone=$2
shift 2
digest=$(printf '%s' "$commit" | sha256sum)
seed=$((16#${digest:0:8}))
if ((seed % 2)); then
  export TZ=$zone
  set -- "$@" tests/unit tests/property tests/sql
fi
export LAKELET_SEED=$seed
echo "== slice of $commit: seed $seed, zone ${TZ:-of this machine}; to repeat it: make test-slice SLICE=$commit"
exec "$(dirname "$0")/step.sh" "slice" "$@" --hypothesis-seed "$seed"
