#!/usr/bin/env bash
# Applies each deliberate fault (*/*.patch) to a copy of one source file, compiles that file alone, links it
# before the library into the program that must notice, and requires that program to fail, and to pass without
# the fault. Prints the counts as its last line.
# Usage: tests/mutants/run.sh [--build DIR] [NAME...]     (DIR: a preset's build folder, default build/release)
exec python3 "$(dirname "$0")/run.py" "$@"
