#!/bin/sh
# The whole line on this machine: two real length lists -> skrulld -> 32 workers -> proof and pictures.
# usage: deploy/quickstart.sh            (Debian 12; root or sudo where packages are missing)
# Works offline once the packages are there, needs no GPU, leaves nothing running.
set -eu
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$1"; }
die() {
    echo "quickstart: $1" >&2
    exit 1
}

say "Packages"
deploy/packages.sh build && echo "all there"

say "Build"
[ -f build/build.ninja ] || meson setup build -Dbuildtype=release -Dtests=false -Dcuda=disabled >build.log 2>&1 || {
    tail -n 20 build.log >&2
    die "meson setup failed"
}
rm -f build.log
ninja -C build daemon/skrulld client/ctl/skrullctl cuda/worker/skrull-worker | tail -n 1
skrulld=build/daemon/skrulld ctl=build/client/ctl/skrullctl worker=build/cuda/worker/skrull-worker

work=$(mktemp -d)
daemon=
finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
SKRULL_SERVER=unix:$work/skrulld.sock
export SKRULL_SERVER

say "The data: two real length lists"
for list in gsm8k_train code_megatron; do
    echo "tests/data/lengths/$list.txt"
    $ctl index describe "tests/data/lengths/$list.txt"
    echo
done

say "skrulld on a temporary socket"
$skrulld --listen "$SKRULL_SERVER" --state "sqlite:$work/state.db" --data-root "$PWD/tests/data/lengths" \
    --drain-timeout 5 2>"$work/skrulld.log" &
daemon=$!
tries=0
until $ctl health >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] && kill -0 "$daemon" 2>/dev/null || {
        cat "$work/skrulld.log" >&2
        die "skrulld did not start"
    }
    sleep 0.1
done
grep listening "$work/skrulld.log"

say "A job: DP 4 x CP 8, global batch 256, 100 steps"
cp deploy/quickstart.yaml "$work/job.yaml"
$ctl job create -f "$work/job.yaml"

say "32 workers stream their plans"
started=$(date +%s%N)
rank=0 pids=
while [ "$rank" -lt 32 ]; do
    $worker --job quickstart --data-rank "$rank" --backend none >"$work/rank-$rank.log" 2>"$work/rank-$rank.err" &
    pids="$pids $!"
    rank=$((rank + 1))
done
for pid in $pids; do
    wait "$pid" || {
        cat "$work"/rank-*.err >&2
        die "a worker failed"
    }
done
echo "32 workers x 100 steps in $((($(date +%s%N) - started) / 1000000)) ms"
/usr/bin/python3 deploy/check_digests.py --ranks 32 --steps 100 "$work"/rank-*.log

say "Every plan is sound"
step=0
while [ "$step" -lt 100 ]; do
    $ctl plan check quickstart --step "$step" --data-root tests/data/lengths >"$work/check" || die "the plan of step $step is not sound"
    step=$((step + 1))
done
echo "100 plans checked; the last: $(cat "$work/check")"

say "Step 0, rank by rank"
$ctl plan show quickstart --step 0

say "Modelled iteration time, 100 steps"
$ctl compare -f "$work/job.yaml" --data-root tests/data/lengths --steps 100 --policies uniform,round_robin,skrull,joint

say "Training on this CPU: 8 ranks by the plans, and one rank that knows no plan, the same batches"
cp deploy/quickstart-training.yaml "$work/training.yaml"
$ctl job create -f "$work/training.yaml" >/dev/null
$worker --job quickstart-training --backend cpu --comm threads >"$work/scheduled.log" || die "the scheduled run failed"
$worker --job quickstart-training --backend cpu --unscheduled >"$work/alone.log" || die "the unscheduled run failed"
# Losses by step, with the curve drawn from the first loss down.
awk '
    { step = loss = ""
      for (i = 1; i <= NF; i++) { split($i, word, "="); if (word[1] == "step") step = word[2]; if (word[1] == "loss") loss = word[2] } }
    FNR == NR { scheduled[step] = loss; next }
    {
        if (!n++) { first = loss; print "step   8 ranks, plans   1 rank, no plan   difference" }
        width = int((loss / first - 0.8) * 200); bar = ""
        for (i = 0; i < width; i++) bar = bar "▪"
        difference = scheduled[step] - loss; if (difference < 0) difference = -difference
        if (difference / loss > 1e-5) different++
        if (step % 3 == 0) printf "%4d   %.9f      %.9f      %7.1e    %s\n", step, scheduled[step], loss, difference, bar
    }
    END { if (n != 30 || different) { print "the losses differ"; exit 1 } print "30 steps, every loss within 1e-5" }
' "$work/scheduled.log" "$work/alone.log" || die "scheduled training is not the same training"
