#!/usr/bin/python3
"""Plans every length list on every grid by every policy, and has an independent script find faults.

usage: tests/sweep_plans.py --skrullctl PATH [--lists DIR] [--sample N] [--equal] [--workers N]

Each case is a job file: list x grid x bucket x align x shard x policy, over-length rows dropped, a global
batch of 256. `skrullctl plan make` plans one of its steps in-process; tests/reference/check_plan.py checks
every invariant, recomputes all digests and holds the modelled time to 0.1 %; order and exact count of
micro-batches are checked here, by its clock. Model, loss, step and the options of micro-batches change from
case to case. --sample picks N cases, always the same; --equal asks for equal numbers of micro-batches in all.
Exit status: 0 all sound, 1 not.
"""
import argparse
import contextlib
import glob
import importlib.util
import io
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GRIDS = ((4, 8), (2, 16), (1, 1), (8, 1), (1, 64), (3, 6))
BUCKETS = (26624, 13312)
ALIGNS = (1, 8, 128)
SHARDS = ("zigzag", "contiguous")
POLICIES = ("uniform", "round_robin", "skrull", "joint")
LOSSES = ("token_mean", "sequence_mean", "none")
# Counts, order and mix of micro-batches; "exact" is what every policy can keep of a batch of GLOBAL, and more.
OPTIONS = (
    {},
    {"equal": True},
    {"order": "largest_first"},
    {"mix": "uniform"},
    {"equal": True, "multiple": 4, "min": 6},
    {},
    {"order": "heavy_middle", "mix": "uniform"},
    {"equal": True, "order": "heavy_middle", "multiple": 3},
    {"exact": True, "order": "heavy_middle"},
    {"equal": True, "mix": "uniform", "multiple": 2, "min": 7},
    {"exact": True, "mix": "uniform", "order": "largest_first", "elastic": True},
)
MODELS = (("qwen2.5-0.5b", 896, 128, 24), ("qwen2.5-7b", 3584, 512, 28))
GLOBAL = 256


def load_checker():
    spec = importlib.util.spec_from_file_location("check_plan", os.path.join(HERE, "reference", "check_plan.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_cases(lists):
    """Every combination; the rest changes from case to case, so that each meets each."""
    combinations = itertools.product(lists, GRIDS, BUCKETS, ALIGNS, SHARDS, POLICIES)
    return [dict(number=number, list=name, dp=dp, cp=cp, bucket=bucket, align=align, shard=shard, policy=policy,
                 options=OPTIONS[number % len(OPTIONS)], model=MODELS[number // 3 % 7 == 0],
                 loss=LOSSES[number // 2 % 3], step=number // 3 % 3)
            for number, (name, (dp, cp), bucket, align, shard, policy) in enumerate(combinations)]


def title(case):
    return "{policy} on {0} <{dp}, {cp}> bucket {bucket} align {align} {shard} {1} {loss} step {step} {options}".format(
        os.path.basename(case["list"]), case["model"][0], **case)


def exact_count(case):
    """What one sequence a micro-batch needs, and some: dummies must fill up."""
    return GLOBAL // case["dp"] + 9 if case["options"].get("exact") else 0


def is_equal(case):
    return bool(case["options"].get("equal") or case["options"].get("exact"))


def job_of(case):
    options = case["options"]
    return dict(name="sweep", model=dict(preset=case["model"][0]),
                parallel=dict(dp=case["dp"], cp=case["cp"], cp_mode="elastic" if options.get("elastic") else "fixed"),
                batch={"global": GLOBAL, "bucket_tokens": case["bucket"], "align": case["align"],
                       "shard": case["shard"], "equal_micro_batches": "true" if options.get("equal") else "false",
                       "micro_batches": exact_count(case), "micro_batch_multiple": options.get("multiple", 1),
                       "micro_batch_min": options.get("min", 1), "mix": options.get("mix", "any"),
                       "micro_batch_order": options.get("order", "as_planned")},
                data=[dict(index=case["list"], over_length="drop")], loss=case["loss"], policy=case["policy"])


def check_arguments(case, plan):
    _, hidden, kv_hidden, layers = case["model"]
    options = case["options"]
    named = {"plan": plan, "lengths": case["list"], "dp": case["dp"], "cp": case["cp"], "bucket": case["bucket"],
             "align": case["align"], "shard": case["shard"], "loss": case["loss"], "global": GLOBAL,
             "hidden": hidden, "kv-hidden": kv_hidden, "layers": layers, "mix": options.get("mix", "any"),
             "multiple": options.get("multiple", 1), "min": options.get("min", 0),
             "cp-mode": "elastic" if options.get("elastic") else "fixed"}
    return [f"--{name}={value}" for name, value in named.items()] + ["--json"] + (["--equal"] if is_equal(case) else [])


def times_alone(checker, plan, case, first, size):
    """Seconds that each micro-batch of ranks [first, first + size) takes by itself, on the slowest of them."""
    cost, rows = checker.Cost(*case["model"][1:]), plan["ranks"][first:first + size]
    times = []
    for m in range(max(len(row.get("microBatches", [])) for row in rows)):
        batch = []
        for row in rows:
            segments = row["microBatches"][m].get("segments", []) if m < len(row.get("microBatches", [])) else []
            held = {int(g.get("sample", 0)): (int(g["sequenceLength"]), int(g.get("groupFirst", 0)) - first,
                                              int(g["groupSize"])) for g in segments}
            batch.append([(sample, *rest) for sample, rest in held.items()])
        times.append(checker.evaluate([batch], size, cost, case["cp"]))
    return times


def order_fault(checker, plan, case):
    """Micro-batches that do not stand as the job's order asks, as text."""
    order, size = case["options"].get("order"), case["cp"] * (case["dp"] if case["options"].get("elastic") else 1)
    for first in range(0, case["dp"] * case["cp"] if order else 0, size):
        times = times_alone(checker, plan, case, first, size)
        n = len(times)
        steps = range(n) if order == "largest_first" else \
            [(n - 1) // 2 + ((i + 1) // 2 if i % 2 else -(i // 2)) for i in range(n)]
        times = [times[m] for m in steps]
        if any(b > a * (1 + 1e-6) for a, b in zip(times, times[1:])):
            return f"ranks from {first}: micro-batches are not {order}"
    return ""


def count_fault(plan, case):
    exact = exact_count(case)
    counts = {len(row.get("microBatches", [])) for row in plan["ranks"]}
    return f"counts {sorted(counts)}, the job wants {exact}" if exact and counts != {exact} else ""


def run_checker(checker, arguments):
    """Its exit status, its report and its faults."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["check_plan.py", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = checker.main()
    finally:
        sys.argv = argv
    return status, out.getvalue(), err.getvalue()


def run_case(task):
    """Faults of one case, as text; empty: none."""
    case, skrullctl = task
    with tempfile.TemporaryDirectory() as folder:
        job, plan = os.path.join(folder, "job.json"), os.path.join(folder, "plan.json")
        with open(job, "w", encoding="utf-8") as file:
            json.dump(job_of(case), file)
        with open(plan, "w", encoding="utf-8") as file:
            made = subprocess.run([skrullctl, "plan", "make", "-f", job, "--step", str(case["step"]), "-o", "json"],
                                  stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0:
            return title(case) + ": " + made.stderr.strip()
        status, out, err = run_checker(run_case.checker, check_arguments(case, plan))
        if status != 0:
            return title(case) + ": " + (err or out).strip()
        with open(plan, encoding="utf-8") as file:
            content = json.load(file)
        estimate, report = content["estimate"], json.loads(out)
        # What the checker judges only where the plan states it must have been stated.
        if not int(estimate.get("iterationNs", 0)) or not int(estimate.get("boundNs", 0)):
            return title(case) + ": no estimate"
        # The script knows a simple bound; the daemon's is tighter, and never above the time.
        if not (1 - 1e-3) * report["boundMs"] <= int(estimate["boundNs"]) / 1e6 <= report["iterationMs"] * (1 + 1e-3):
            return title(case) + f": bound {estimate['boundNs']} ns, the script says {report['boundMs']} ms"
        fault = count_fault(content, case) or order_fault(run_case.checker, content, case)
    return title(case) + ": " + fault if fault else ""


def start_worker():
    run_case.checker = load_checker()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skrullctl", required=True)
    parser.add_argument("--lists", default=os.path.join(HERE, "data", "lengths"))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    lists = sorted(glob.glob(os.path.join(os.path.abspath(arguments.lists), "*.txt")))
    cases = all_cases(lists)
    if arguments.sample:
        cases = random.Random(150).sample(cases, arguments.sample)
    if arguments.equal:
        cases = [dict(case, options=dict(case["options"], equal=True)) for case in cases]
    start, faulty = time.monotonic(), 0
    tasks = [(case, os.path.abspath(arguments.skrullctl)) for case in cases]
    with multiprocessing.Pool(arguments.workers, start_worker) as pool:
        for fault in pool.imap_unordered(run_case, tasks):
            if fault:
                faulty += 1
                print(fault, flush=True)
    print(f"{len(cases)} plans of {len(lists)} lists, {faulty} faulty, {time.monotonic() - start:.0f} s")
    return 1 if faulty or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
