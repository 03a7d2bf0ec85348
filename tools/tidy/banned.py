"""Calls that reach for the world (clock, randomness, threads, environment, other programs) outside their rooms.

Tests beside the code may start threads, to race on what they test; they never read a clock or sleep.
"""

import re

CHECKED = ("src", "sim")


# Words after which a name and a parenthesis are a call; after any other word they declare a variable.
_BEFORE_CALL = r"return|co_return|co_await|co_yield|throw|else|do|case|and|or|not"


def _call(names):
    return re.compile(rf"(?<![\w.>:])(?<!->)(?:::|std::)?(?:{names})\s*\(")


def _declares(code, offset):
    before = re.search(r"([\w>&*]+)[ \t]+[&*]*$", code[max(0, offset - 80):offset])
    return bool(before) and not re.fullmatch(_BEFORE_CALL + r"|[&*=]+|&&|>+", before.group(1))


#      what it is, pattern, the rooms that may, whether *_test.cc may
RULES = [
    ("the real clock", re.compile(r"\b(?:steady|system|high_resolution|utc|file)_clock\s*::\s*now\b"),
     ("src/io",), False),
    ("the real clock", _call("time|gettimeofday|clock_gettime|ftime|localtime|localtime_r"), ("src/io",), False),
    ("randomness", re.compile(r"\bstd::(?:random_device|mt19937(?:_64)?|default_random_engine)\b"),
     ("src/io",), False),
    ("randomness", _call("rand|srand|random|drand48|getrandom|getentropy"), ("src/io",), False),
    ("a thread", re.compile(r"\bstd::(?:jthread|thread)\b(?!\s*::)|\bstd::async\b|\bpthread_create\b"),
     ("src/io",), True),
    ("the environment", _call("getenv|secure_getenv|setenv|putenv|unsetenv"), ("src/io", "src/cli"), False),
    ("sleeping", re.compile(r"\bsleep_(?:for|until)\b"), ("src/io",), False),
    ("sleeping", _call("sleep|usleep|nanosleep|clock_nanosleep"), ("src/io",), False),
    ("another program", _call("system|popen|fork|vfork|execvp?e?|execl[pe]?|posix_spawnp?"), ("src/io",), False),
]


def check(tree):
    for source in tree.cpp(*CHECKED):
        for what, pattern, rooms, tests_may in RULES:
            if source.in_any(rooms) or (tests_may and source.is_test):
                continue
            for match in pattern.finditer(source.code):
                if match.group().endswith("(") and _declares(source.code, match.start()):
                    continue
                call = re.sub(r"\s+", "", match.group()).rstrip("(")
                yield source.finding(match.start(), "banned", f"{call}: {what} belongs to {', '.join(rooms)}")
