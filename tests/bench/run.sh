#!/bin/sh
# Every figure that is promised, beside its limit: "ok" or "FAILED" before each; exits with 1 where
# one failed. Builds a release, needs 2 GB of disk and memory, takes about two minutes. Other work on
# the machine counts against it: the load average is printed first and last.
# usage: tests/bench/run.sh [BUILD_DIR]           (default: build-bench)
#        tests/bench/run.sh --smoke BUILD_DIR     small sizes, no limits, seconds: does it still run?
# Environment: SKRULL_BENCH names the parts to run (default: "index planner throughput first fanout memory").
set -eu
cd "$(dirname "$0")/../.."

smoke=
if [ "${1:-}" = --smoke ]; then
    smoke=yes
    shift
fi
build=${1:-build-bench}
parts=${SKRULL_BENCH:-index planner throughput first fanout memory}
lengths=$PWD/tests/data/lengths

if [ -z "$smoke" ]; then
    [ -f "$build/build.ninja" ] || meson setup "$build" --buildtype=release >/dev/null
    ninja -C "$build" daemon/skrulld client/ctl/skrullctl tests/bench/bench_index tests/bench/bench_planner \
        tests/bench/load_client >/dev/null
fi
build=$(cd "$build" && pwd)
ctl=$build/client/ctl/skrullctl
export SKRULL_SERVER

work=$(mktemp -d)
daemon=
stop() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null || true
        daemon=
    fi
}
finish() {
    status=$?
    trap - EXIT INT TERM
    stop
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
run() {
    "$@" || failed=1
}

# usage: size FULL SMOKE
size() {
    [ -z "$smoke" ] && echo "$1" || echo "$2"
}

say() {
    printf '\n%s\n' "$1"
}

# A daemon of its own for each part: on TCP over loopback for the load, as workers would reach it.
start() {
    rm -rf "$work/state.db"*
    "$build/daemon/skrulld" --listen 127.0.0.1:0 --listen "unix:$work/skrulld.sock" --state "sqlite:$work/state.db" \
        --data-root "$lengths" --drain-timeout 5 2>"$work/skrulld.log" &
    daemon=$!
    SKRULL_SERVER=unix:$work/skrulld.sock
    tries=0
    until "$ctl" health >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] && kill -0 "$daemon" 2>/dev/null || {
            cat "$work/skrulld.log" >&2
            echo "run.sh: skrulld did not start" >&2
            exit 1
        }
        sleep 0.1
    done
    address=$(sed -n 's/.* listening address=\(127[^ ]*\).*/\1/p' "$work/skrulld.log")
}

# A job on Wikipedia's lengths. usage: job NAME DP GLOBAL POLICY; CP is 8
job() {
    cat >"$work/$1.yaml" <<EOF
name: $1
model: {preset: qwen2.5-0.5b}
parallel: {dp: $2, cp: 8}
batch: {global: $3, bucket_tokens: 26624}
data: [{index: wikipedia.txt, over_length: drop}]
seed: 42
steps: 100000000
policy: $4
EOF
    "$ctl" job create -f "$work/$1.yaml" >/dev/null
}

# usage: load CASE JOB KEY=VALUE...
load() {
    case=$1 name=$2
    shift 2
    run "$build/tests/bench/load_client" "$case" "$address" "$name" pid="$daemon" "$@" ${smoke:+limits=0}
}

bench_index() {
    say "A length index"
    run "$build/tests/bench/bench_index" "$lengths/wikipedia.txt" "$ctl" "$work" "$(size 100000000 100000)"
}

bench_planner() {
    say "Planning, one core"
    run "$build/tests/bench/bench_planner" "$lengths" ${smoke:+1}
}

bench_throughput() {
    say "RankPlans in all: <4, 8>, 256 sequences a step; by skrull, and by joint, whose search takes the time"
    start
    job small 4 256 skrull
    job searched 4 256 joint
    load throughput small ranks=32 streams="$(size 64 32)" runs="$(size 5 1)" \
        seconds="$(size 3 1)"
    load throughput searched ranks=32 streams="$(size 64 32)" runs="$(size 5 1)" seconds="$(size 3 1)" limits=0
    stop
}

bench_first() {
    say "A new stream: <4, 8>, 256 sequences a step, joint"
    start
    job small 4 256 joint
    load first small ranks=32 runs="$(size 101 3)"
    stop
}

bench_fanout() {
    say "A step everywhere: <128, 8>, 4,096 sequences a step, joint"
    start
    job fleet "$(size 128 8)" "$(size 4096 256)" joint
    load fanout fleet ranks="$(size 1024 64)" streams="$(size 1024 64)" runs="$(size 41 2)"
    stop
}

bench_memory() {
    say "Connections: <250, 8>, 8,000 sequences a step, joint"
    start
    job wide "$(size 250 8)" "$(size 8000 256)" joint
    load memory wide ranks="$(size 2000 64)" streams="$(size 2000 64)" runs="$(size 3 1)"
    stop
}

echo "$(nproc) cores, load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
[ "$(cut -d . -f 1 /proc/loadavg)" -lt "$(nproc)" ] || echo "other work shares this machine: the figures are worse than they are"
for part in $parts; do
    "bench_$part"
done
say "load average $(cut -d ' ' -f 1-3 /proc/loadavg); $([ "$failed" = 0 ] && echo "every limit holds" || echo "a limit FAILED")"
exit "$failed"
