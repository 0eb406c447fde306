#!/bin/sh
# Installs what is missing, builds, runs every test. Last line: "N passed, N failed".
# usage: tests/run.sh [BUILD_DIR [MESON_OPTION...]]      (default: build-test -Dwerror=true)
# Environment: CC picks the compiler; SKRULL_SUITE runs one suite of tests only.
set -u
cd "$(dirname "$0")/.." || exit 1

fail() {
    echo "run.sh: $1" >&2
    echo "0 passed, 1 failed"
    exit 1
}

build=${1:-build-test}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- -Dwerror=true

deploy/packages.sh test || fail "packages are missing"
[ -f "$build/build.ninja" ] || meson setup "$build" "$@" >"$build.log" 2>&1 || {
    tail -n 30 "$build.log" >&2
    fail "meson setup failed"
}
rm -f "$build.log"
ninja -C "$build" || fail "the build failed"

meson test -C "$build" --no-rebuild --print-errorlogs ${SKRULL_SUITE:+--suite "$SKRULL_SUITE"}
status=$?
/usr/bin/python3 tests/count_results.py "$build/meson-logs/testlog.json" || exit 1
exit "$status"
