#!/usr/bin/env bash
# step.sh TITLE COMMAND...: runs the command, then says how long it took. The exit status is the command's.
set -uo pipefail
title=$1
shift
begin=$(date +%s%N)
"$@"
status=$?
took=$((($(date +%s%N) - begin) / 100000000))
if ((status == 0)); then verdict=ok; else verdict="FAILED ($status)"; fi
printf '== %-24s %4d.%d s  %s\n' "$title" $((took / 10)) $((took % 10)) "$verdict"
exit "$status"
