#!/usr/bin/python3
"""Sums up a meson test log: every TAP line counts, and every test that prints none counts once.

usage: count_results.py testlog.json
Prints "N passed, N failed[, N skipped]" and exits with 0 where nothing failed and something passed.
"""
import json
import re
import sys

TAP = re.compile(r"^(not )?ok \d+(.*)$", re.MULTILINE)


def main():
    passed = failed = skipped = 0
    with open(sys.argv[1], encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    for test in tests:
        points = TAP.findall(test.get("stdout") or "")
        bad = sum(1 for point in points if point[0])
        skips = sum(1 for point in points if "# SKIP" in point[1])
        if test["result"] == "SKIP":
            skipped += 1
        elif test["result"] not in ("OK", "EXPECTEDFAIL"):
            failed += max(bad, 1)
            passed += len(points) - bad - skips
            skipped += skips
        else:
            passed += max(len(points) - skips, 0 if points else 1)
            skipped += skips
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
