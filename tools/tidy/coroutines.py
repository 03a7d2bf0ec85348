"""Faults of g++ 12's coroutines (reproduced on 12.2), and the two habits that leave a coroutine with dead references.

In a full expression with co_await, an aggregate prvalue argument and a temporary lambda with captures are
destroyed twice, and a braced list of class types does not compile. Name the value first and move it in.
"""

import re

_AGGREGATE = re.compile(r"[(,]\s*(?:[A-Za-z_][\w:]*(?:<[^<>;]*>)?\s*)?\{")
_CAPTURING = r"\[\s*[^\]\s][^\]]*\]\s*(?:\([^()]*\)\s*)?(?:mutable\s*|noexcept\s*)*"
_AWAITABLE = r"(?:\w+::)*(?:awaitable|Task)\s*<"
_TEMPORARY_LAMBDA = re.compile(rf"[(,]\s*{_CAPTURING}(?:->[^{{;]*)?\{{")
_LAMBDA_COROUTINE = re.compile(rf"[(,=]\s*{_CAPTURING}->\s*{_AWAITABLE}|\breturn\s*{_CAPTURING}->\s*{_AWAITABLE}")
_COROUTINE = re.compile(rf"\b{_AWAITABLE}[^;{{}}()]*>\s+([\w:]+)\s*\(([^()]*)\)\s*(?:const\s*)?\{{")
_VIEW = re.compile(r"&(?!&)|\b(?:string_view|span|Bytes|MutableBytes)\b")


def check(tree):
    for source in tree.cpp():
        for start, text in _await_expressions(source.code):
            if (m := _TEMPORARY_LAMBDA.search(text)):
                yield source.finding(start + m.start(), "coroutine", "a temporary lambda with captures beside co_await"
                                     " is destroyed twice: name it first")
            elif (m := _AGGREGATE.search(text)):
                yield source.finding(start + m.start(), "coroutine", "a braced argument beside co_await"
                                     " is destroyed twice: name it and move it in")
        for m in _LAMBDA_COROUTINE.finditer(source.code):
            yield source.finding(m.start(), "coroutine", "a lambda coroutine with captures outlives what it captured")
        for m in _COROUTINE.finditer(source.code):
            if (view := _VIEW.search(m.group(2))):
                yield source.finding(m.start(), "coroutine", f"{m.group(1)}: a coroutine's parameter is a value,"
                                     f" not a reference or view ({view.group()})")


def _await_expressions(code):
    """Full expressions that hold a co_await: from the statement's start to its `;`, lambda bodies included."""
    for match in re.finditer(r"\bco_await\b", code):
        start, end = _statement_start(code, match.start()), match.end()
        depth = 0
        while end < len(code):
            depth += (code[end] in "({[") - (code[end] in ")}]")
            if depth < 0 or (code[end] == ";" and depth == 0):
                break
            end += 1
        yield start, code[start:end]


def _statement_start(code, offset):
    """Back to the statement's first character; a `}` that an argument list goes on after is part of it."""
    depth = 0
    while offset > 0:
        c = code[offset - 1]
        if c == ";" and depth == 0 or c == "{" and depth == 0:
            break
        if c == "}" and depth == 0 and not re.match(r"\s*[,).]", code[offset:offset + 200]):
            break
        depth += c in ")}]"
        depth = max(0, depth - (c in "({["))
        offset -= 1
    return offset
