#!/bin/bash
# Builds the fuzz targets with clang and runs each; fails on any finding.
# usage: tests/fuzz/run.sh SECONDS [TARGET...]      (default: all targets, SECONDS each)
# Environment: SKRULL_FUZZ_JOBS targets at a time (default: 2). What the targets learn stays in
# build-fuzz/corpus; findings are build-fuzz/findings/TARGET/*, and go to tests/fuzz/corpus/TARGET
# as regression_* once they are mended.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=build-fuzz
[ $# -gt 0 ] || {
    echo "usage: tests/fuzz/run.sh SECONDS [TARGET...]" >&2
    exit 2
}
seconds=$1
shift
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')

build_targets() {
    [ -f "$build/build.ninja" ] || CC=clang meson setup "$build" -Dfuzz=true -Dwerror=true \
        -Db_sanitize=address,undefined -Db_lundef=false || return 1
    ninja -C "$build" $(printf 'tests/fuzz/%s ' "$@")
}

build_targets "$@" >"$build.log" 2>&1 || {
    tail -n 60 "$build.log" >&2
    echo "run.sh: the fuzz targets were not built" >&2
    exit 1
}
rm -f "$build.log"
tests/fuzz/make_corpus.py --more "$build/seeds" || exit 1

run_target() { # name; prints a line, or the end of its log
    mkdir -p "$build/corpus/$1" "$build/findings/$1" "$build/seeds/$1"
    dictionary=$build/seeds/$1.dict
    [ -f "$dictionary" ] || dictionary=
    log=$build/findings/$1.log
    if "$build/tests/fuzz/$1" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=60 \
        -max_len=4096 -print_final_stats=1 ${dictionary:+-dict="$dictionary"} \
        -artifact_prefix="$build/findings/$1/" "$build/corpus/$1" "$build/seeds/$1" \
        "tests/fuzz/corpus/$1" >"$log" 2>&1; then
        echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
            "$(ls "$build/corpus/$1" | wc -l) in the corpus," \
            "peak $(sed -n 's/^stat::peak_rss_mb: *//p' "$log") MB, no finding"
        return 0
    fi
    grep -vE '^#[0-9]+[[:space:]]' "$log" | tail -n 60 >&2
    echo "$1: FAILED, see $log and $build/findings/$1" >&2
    return 1
}

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
status=0
while [ $# -gt 0 ]; do
    pids=
    for _ in $(seq "${SKRULL_FUZZ_JOBS:-2}"); do
        [ $# -gt 0 ] || break
        run_target "$1" &
        pids="$pids $!"
        shift
    done
    for pid in $pids; do
        wait "$pid" || status=1
    done
done
exit $status
