#!/usr/bin/env python3
"""Checks the repository's own rules: floors, rooms, banned calls, coroutine faults, budgets, hygiene.

Usage: tools/tidy/tidy.py [--root DIR] [--shrink]
Prints `path:line: [rule] message` a finding; exits 1 when there is any. --shrink lowers the baseline to what
the tree needs now; it never adds to it.
"""

import argparse
import json
import sys
from pathlib import Path

import banned
import budgets
import coroutines
import floors
import hygiene
from source import Tree

BASELINE = "tools/tidy/baseline.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2], type=Path)
    parser.add_argument("--shrink", action="store_true", help="lower the baseline to what the tree needs now")
    options = parser.parse_args()
    tree = Tree.read(options.root)
    baseline = json.loads((options.root / BASELINE).read_text())
    if options.shrink:
        baseline = budgets.shrink(tree, baseline)
        (options.root / BASELINE).write_text(json.dumps(baseline, indent=2, sort_keys=True) + "\n")
    findings = sorted(find(tree, baseline), key=lambda f: (f.path, f.line))
    for finding in findings:
        print(finding)
    print(f"tidy: {len(tree.sources)} files, {len(findings)} findings")
    return 1 if findings else 0


def find(tree, baseline):
    for rules in (floors, banned, coroutines, hygiene):
        yield from rules.check(tree)
    yield from budgets.check(tree, baseline)


if __name__ == "__main__":
    sys.exit(main())
