#!/usr/bin/python3
"""Prints registers, shared memory and spills of each kernel; fails on a spill.

Registers and spills are what ptxas said when nvcc built it (REPORT, the .ptxas files in
build/cuda/kernels); threads and dynamic shared memory are what the kernel's test launched it with on
the CPU (LAUNCHES, by SHIM_TRACE; a dash where that test has not run).

usage: ptxas.py REPORT... [--launches LAUNCHES...]
"""
import os
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\d+a?)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def parse(text):
    """Yields (mangled name, target, registers, spilled bytes)."""
    entry = None
    spilled = 0
    for line in text.split("\n"):
        found = ENTRY.search(line)
        if found:
            entry, spilled = found.groups(), 0
        found = SPILLS.search(line)
        if found:
            spilled = int(found[1]) + int(found[2])
        found = USED.search(line)
        if found and entry:
            yield (*entry, int(found[1]), spilled)
            entry = None


def short(name):
    """add_kernel<float> of "void (anonymous namespace)::add_kernel<float>(unsigned long, ...)"."""
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|sk::|cuda_build::|shim_build::|^void ", "", name)
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            return name[:i]
    return name


def output(*command, text=None):
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def read_launches(paths):
    """Short name -> set of (threads, shared bytes)."""
    launches = {}
    symbols = {}
    for path in filter(os.path.exists, paths):
        with open(path, encoding="utf-8") as lines:
            for program, offset, threads, shared in (line.split() for line in lines):
                if not os.path.exists(program):
                    continue
                if program not in symbols:
                    table = (line.split(" ", 2) for line in output("nm", "-C", program).split("\n"))
                    symbols[program] = {int(row[0], 16): row[2] for row in table if len(row) == 3 and row[0]}
                name = short(symbols[program].get(int(offset, 16), "?"))
                launches.setdefault(name, set()).add((int(threads), int(shared)))
    return launches


def main():
    reports, _, traces = " ".join(sys.argv[1:]).partition("--launches")
    rows = []
    for path in reports.split():
        with open(path, encoding="utf-8") as report:
            rows += parse(report.read())
    names = output("c++filt", text="\n".join(row[0] for row in rows)).split("\n")
    launches = read_launches(traces.split())
    print("registers  spilled  target  threads  shared bytes   kernel")
    for name, (_, target, registers, spilled) in zip(map(short, names), rows):
        shapes = sorted(launches.get(name, {("-", "-")}))
        threads = ",".join(sorted({str(shape[0]) for shape in shapes}))
        shared = ",".join(sorted({str(shape[1]) for shape in shapes}))
        print(f"{registers:>9} {spilled:>8}  {target:<6} {threads:>8}  {shared:>12}   {name}")
    spilling = sum(row[3] > 0 for row in rows)
    print(f"{len(rows)} kernels, {spilling} spill")
    return 1 if spilling or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
