"""Headers open with a contract; nothing is left to be done later; nothing names the machine it was written on."""

import re

MAX_COLUMNS = 120
_UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
_MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:root|home/\w+|work|tmp/\w+|Users/\w+)/")
_URL = re.compile(r"\b(?:https?|ftp)://([\w.-]+)")
_LOCAL_HOSTS = {"127.0.0.1", "localhost"}
_RULE_SAMPLES = "tools/tidy/test_tidy.py"


def check(tree):
    for source in tree.sources:
        if source.path == _RULE_SAMPLES:
            continue
        for m in _UNFINISHED.finditer(source.text):
            yield source.finding(m.start(), "unfinished", f"{m.group()}: do it, or file it")
        for m in _MACHINE_PATH.finditer(source.text):
            yield source.finding(m.start(), "machine", f"{m.group()} is a path of one machine")
        if source.suffix in {".sh", ".cmake"}:
            yield from _hosts(source)
        if source.is_cpp or source.suffix in {".py", ".sh"}:
            yield from _columns(source)
        if source.suffix == ".h":
            yield from _header(source)


def _hosts(source):
    for m in _URL.finditer(source.text):
        if m.group(1) not in _LOCAL_HOSTS:
            yield source.finding(m.start(), "machine", f"{m.group(1)}: fetch through the package managers alone")


def _columns(source):
    for number, line in enumerate(source.text.split("\n"), 1):
        if len(line) > MAX_COLUMNS:
            yield source.finding(_offset(source.text, number), "columns", f"{len(line)} columns, limit {MAX_COLUMNS}")


def _offset(text, line):
    offset = 0
    for _ in range(line - 1):
        offset = text.index("\n", offset) + 1
    return offset


def _header(source):
    if "#pragma once" not in source.text:
        yield source.finding(0, "header", "#pragma once is missing")
    opening = re.sub(r"^\s*#pragma once\s*", "", source.text).lstrip()
    if not opening.startswith(("//", "/*")):
        yield source.finding(0, "header", "a header opens with its contract: what it is, owner, what always holds")
