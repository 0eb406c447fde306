#!/usr/bin/python3
"""Prints what ptxas says of each kernel: registers, shared memory, spills. Fails on a spill.

usage: ptxas.py REPORT...      (the .ptxas files beside the objects in build/cuda/kernels)
"""
import re
import shutil
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\d+a?)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def parse(text):
    """Yields (mangled name, target, registers, static shared bytes, stack bytes, spilled bytes)."""
    entry = stack = spilled = None
    for line in text.split("\n"):
        found = ENTRY.search(line)
        if found:
            entry, stack, spilled = found.groups(), 0, 0
        found = SPILLS.search(line)
        if found and entry:
            stack, spilled = int(found[1]), int(found[2]) + int(found[3])
        found = USED.search(line)
        if found and entry:
            shared = SHARED.search(line)
            yield (*entry, int(found[1]), int(shared[1]) if shared else 0, stack, spilled)
            entry = None


def demangle(names):
    """Short names of kernels, as C++ writes them; without c++filt as they are."""
    if not shutil.which("c++filt"):
        return names
    out = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout
    short = [re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|sk::|cuda_build::|^void ", "", name)
             for name in out.split("\n")]
    return [re.sub(r"\((?!anonymous|bool|int|unsigned).*", "", name) for name in short]


def main():
    rows = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as report:
            found = list(parse(report.read()))
        if not found:
            print(f"{path}: no kernel")
            return 1
        rows += found
    print(f"{'registers':>9} {'shared':>7} {'stack':>6} {'spilled':>8}  target  kernel (shared memory: static part)")
    for name, row in zip(demangle([row[0] for row in rows]), rows):
        _, target, registers, shared, stack, spilled = row
        print(f"{registers:>9} {shared:>7} {stack:>6} {spilled:>8}  {target:<6}  {name}")
    spilling = sum(row[5] > 0 for row in rows)
    print(f"{len(rows)} kernels, {spilling} spill")
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
