#!/bin/sh
# Runs a compiler with what it says in a file; says it aloud only where it fails.
# usage: compile.sh LOG COMMAND...
log=$1
shift
"$@" >"$log" 2>&1 && exit
status=$?
cat "$log" >&2
exit $status
