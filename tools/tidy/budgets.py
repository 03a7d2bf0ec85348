"""Budgets, held by a ratchet: what exceeds them today is listed in baseline.json and may only shrink."""

import ast

from cpp_functions import find_functions
from source import Finding

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 5
MAX_FOLDER_ENTRIES = 25
MEASURED_SUFFIXES = {".h", ".cc", ".py", ".sh", ".js", ".mjs"}
LIMITS = {
    "file-lines": MAX_FILE_LINES,
    "function-lines": MAX_FUNCTION_LINES,
    "parameters": MAX_PARAMETERS,
    "folder-entries": MAX_FOLDER_ENTRIES,
}


def measure(tree):
    """Yields (budget, what, value, path, line) for everything over its budget."""
    for folder, entries in tree.folders.items():
        if entries > MAX_FOLDER_ENTRIES:
            name = folder.relative_to(tree.root).as_posix()
            yield "folder-entries", name, entries, name, 1
    for source in tree.sources:
        if source.suffix not in MEASURED_SUFFIXES:
            continue
        lines = source.text.count("\n") + (not source.text.endswith("\n"))
        if lines > MAX_FILE_LINES:
            yield "file-lines", source.path, lines, source.path, 1
        for name, start, length, parameters in _functions(source):
            what = f"{source.path}:{name}"
            if length > MAX_FUNCTION_LINES:
                yield "function-lines", what, length, source.path, start
            if parameters > MAX_PARAMETERS:
                yield "parameters", what, parameters, source.path, start


def _functions(source):
    if source.is_cpp:
        for f in find_functions(source.code):
            first = source.line_of(f.start)
            length = source.line_of(f.end - 1) - first + 1 if f.is_definition else 0
            yield f.name, first, length, f.parameters
    elif source.suffix == ".py":
        for node in ast.walk(ast.parse(source.text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                parameters = sum(a.arg not in ("self", "cls") for a in arguments)
                yield node.name, node.lineno, node.end_lineno - node.lineno + 1, parameters


def check(tree, baseline):
    """`baseline`: budget -> what -> the value it had when it was let through."""
    known = {(budget, what): value for budget, entries in baseline.items() for what, value in entries.items()}
    worst = _worst(tree)
    for (budget, what), (value, path, line) in worst.items():
        allowed = known.get((budget, what), LIMITS[budget])
        if value > allowed:
            limit = f"limit {LIMITS[budget]}" if allowed == LIMITS[budget] else f"baseline {allowed}"
            yield Finding(path, line, budget, f"{what}: {value}, {limit}")
    for (budget, what), allowed in known.items():
        value = worst.get((budget, what), (LIMITS[budget], "", 0))[0]
        if value < allowed:
            yield Finding("tools/tidy/baseline.json", 1, budget,
                          f"{what} has shrunk from {allowed} to {value} or less: run tools/tidy/tidy.py --shrink")


def shrink(tree, baseline):
    """The baseline with nothing new, nothing larger, and what no longer exceeds its budget left out."""
    worst = _worst(tree)
    result = {}
    for budget, entries in sorted(baseline.items()):
        kept = {what: min(old, worst[budget, what][0]) for what, old in sorted(entries.items())
                if (budget, what) in worst}
        if kept:
            result[budget] = kept
    return result


def _worst(tree):
    worst = {}
    for budget, what, value, path, line in measure(tree):
        if value > worst.get((budget, what), (0,))[0]:
            worst[budget, what] = (value, path, line)
    return worst
