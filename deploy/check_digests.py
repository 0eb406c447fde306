#!/usr/bin/python3
"""Holds the logs of all workers of a job against each other, as workers do by an all-gather.

usage: check_digests.py --ranks R --steps T LOG...
Each log has a line a step: "step=S epoch=E digest=D rank_digest=G ...". For every step all workers must
have the same digest, and it must be the digest of their rank digests. Exit status 1 where not.
"""
import argparse
import hashlib
import sys


def read(path):
    steps = {}
    with open(path, encoding="utf-8") as log:
        for line in log:
            pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "step" in pairs and "rank_digest" in pairs:
                step = int(pairs["step"])
                if step in steps:
                    raise ValueError(f"{path}: step {step} twice")
                steps[step] = (int(pairs["data_rank"]), pairs["digest"], pairs["rank_digest"])
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("logs", nargs="+")
    args = parser.parse_args()
    try:
        logs = [read(path) for path in args.logs]
    except (OSError, ValueError, KeyError) as error:
        print(f"check_digests: {error}", file=sys.stderr)
        return 1
    faults = 0
    for step in range(args.steps):
        rows = sorted(log[step] for log in logs if step in log)
        digest = hashlib.sha256(b"skrull-plan-1\0" + b"".join(bytes.fromhex(row[2]) for row in rows))
        if [row[0] for row in rows] != list(range(args.ranks)) or \
                {row[1] for row in rows} != {digest.hexdigest()[:32]}:
            print(f"check_digests: step {step}: the workers' plans are not one plan", file=sys.stderr)
            faults += 1
    extra = sum(1 for log in logs for step in log if step >= args.steps)
    if extra:
        print(f"check_digests: {extra} plans past step {args.steps - 1}", file=sys.stderr)
    if not faults and not extra:
        print(f"{args.steps} digests agree over {args.ranks} workers")
    return 1 if faults or extra else 0


if __name__ == "__main__":
    sys.exit(main())
