"""A source file as the rules see it: its text, and its code with comments, strings and directives blanked.

Blanking keeps every offset and line, so that a match in `code` is a place in the file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

CPP_SUFFIXES = {".h", ".cc"}
SCRIPT_SUFFIXES = {".sh", ".py", ".js", ".mjs"}
TEXT_SUFFIXES = CPP_SUFFIXES | SCRIPT_SUFFIXES | {".md", ".txt", ".cmake", ".json", ".proto", ".pbtxt"}
_SHEBANGS = {"bash": ".sh", "sh": ".sh", "python3": ".py", "node": ".mjs"}  # what has no suffix
SKIPPED_FOLDERS = {".git", ".deps", ".ccache", "build", "node_modules", "__pycache__"}

_LITERAL = re.compile(
    r"""(?P<line>//[^\n]*)
      | (?P<block>/\*.*?\*/)
      | (?P<raw>R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<digit>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
      | (?P<char>'(?:\\.|[^'\\\n])*')
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


class Source:
    """One text file of the tree; `path` is relative to the root, with slashes."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.suffix = Path(path).suffix or _SHEBANGS.get(_shebang(text), "")
        self.code = _blank(text) if self.is_cpp else text
        self.includes = list(_includes(text)) if self.is_cpp else []

    @property
    def is_cpp(self):
        return self.suffix in CPP_SUFFIXES

    @property
    def is_test(self):
        return self.path.endswith("_test.cc")

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def finding(self, offset, rule, message):
        return Finding(self.path, self.line_of(offset), rule, message)

    def in_any(self, rooms):
        return any(self.path == room or self.path.startswith(room.rstrip("/") + "/") for room in rooms)


def _shebang(text):
    """The interpreter's name in the first line of a script: "bash"."""
    match = re.match(r"#!\S*/(?:env +)?(\w+)\s*\n", text)
    return match.group(1) if match else ""


def _blank(text):
    def spaces(match):
        if match.lastgroup == "digit":
            return " "
        return re.sub(r"[^\n]", " ", match.group())
    return _LITERAL.sub(spaces, text)


def _includes(text):
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', text, re.MULTILINE):
        yield match.group(2), match.group(1) == "<", match.start()


class Tree:
    """Every text file below `root`, read once."""

    def __init__(self, root, sources, folders=None):
        self.root = root
        self.sources = sources
        self.folders = folders or {}

    @classmethod
    def read(cls, root):
        root = Path(root)
        sources, folders = [], {}
        for path in sorted(_walk(root, folders)):
            relative = path.relative_to(root).as_posix()
            sources.append(Source(relative, path.read_text(encoding="utf-8", errors="replace")))
        return cls(root, sources, folders)

    def cpp(self, *rooms):
        return [s for s in self.sources if s.is_cpp and (not rooms or s.in_any(rooms))]


def _walk(folder, counts):
    entries = [e for e in folder.iterdir() if e.name not in SKIPPED_FOLDERS and not e.is_symlink()]
    counts[folder] = len(entries)
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry, counts)
        elif entry.suffix in TEXT_SUFFIXES or (not entry.suffix and entry.open("rb").read(2) == b"#!"):
            yield entry
