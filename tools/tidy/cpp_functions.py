"""Finds functions in C++ code whose comments and strings are blanked: enough of the grammar for budgets.

Walks the braces. At namespace and class scope the text before a `{` or `;` (the head) tells what it is; the
inside of a function is skipped over, so lambdas count as lines of the function around them.
"""

import re
from dataclasses import dataclass

_SCOPE = re.compile(r"(^|[\s>])(namespace|class|struct|union|enum|extern)\b")
_TEST_MACRO = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\s*$")
# The last parameter of a callback whose signature a C library gives.
_USER_DATA = re.compile(r"void\s*\*\s*(user\w*|context|arg)?\s*$")
_ACCESS = re.compile(r"^\s*(public|private|protected)\s*:(?!:)")


@dataclass(frozen=True)
class Function:
    name: str
    start: int        # offset of the head
    end: int          # offset past the closing brace, or past the `;` of a declaration
    parameters: int   # -1: not counted (a test macro, a C library's callback)
    is_definition: bool


def find_functions(code):
    functions, offset, head_start = [], 0, 0
    while offset < len(code):
        c = code[offset]
        if c == "{":
            head = code[head_start:offset]
            if _is_scope(head):
                head_start = offset + 1
            elif _is_initialiser(head):
                offset = _skip_braces(code, offset)
                continue
            else:
                end = _skip_braces(code, offset)
                _add(functions, head, head_start, end, True)
                head_start = offset = end
                continue
        elif c == "}":
            head_start = offset + 1
        elif c == ";":
            _add(functions, code[head_start:offset], head_start, offset + 1, False)
            head_start = offset + 1
        offset += 1
    return functions


def _is_scope(head):
    flat = _without_groups(head)
    return bool(_SCOPE.search(flat)) and "(" not in flat and "=" not in flat


def _is_initialiser(head):
    """True where `{` opens a value: a brace-initialised variable, or a member in a constructor's list."""
    flat = _without_groups(head)
    if re.search(r"(?<![=!<>])=(?!=)", re.sub(r"operator\s*\S+?\(", "(", flat)):
        return True
    if "(" not in flat:
        return True
    after = flat[flat.index(")") + 1:] if ")" in flat else ""
    in_list = re.search(r"(?<!:):(?!:)", after)
    return bool(in_list) and bool(re.search(r"[\w>]\s*$", after))


def _without_groups(head):
    """The head with template arguments removed and the insides of parentheses emptied."""
    head = _strip_angles(head)
    out, depth = [], 0
    for c in head:
        depth -= c == ")"
        if depth == 0 or c in "()" and depth == 0:
            out.append(c)
        depth += c == "("
    return "".join(out)


def _strip_angles(text):
    text = re.sub(r"operator\s*(<=>|<<|>>|<=|>=|->|<|>)", "operator_", text).replace("->", "  ")
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"<[^<>;{}]*>", lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return text


def _skip_braces(code, offset):
    depth = 0
    while offset < len(code):
        depth += (code[offset] == "{") - (code[offset] == "}")
        offset += 1
        if depth == 0:
            break
    return offset


def _add(functions, head, head_start, end, is_definition):
    while (access := _ACCESS.match(head)):
        head_start += access.end()
        head = head[access.end():]
    stripped = head.lstrip()
    start = head_start + len(head) - len(stripped)
    flat = _strip_angles(stripped)
    opening = _parameter_list(flat)
    if opening is None:
        return
    before = flat[:opening]
    name = re.search(r"([\w~:]+|operator\s*\S+)\s*$", before)
    if not name or re.search(r"(?<![=!<>])=(?!=)", before.replace("operator=", "").replace("operator==", "")):
        return
    is_test = bool(_TEST_MACRO.match(before))
    parameters = -1 if is_test else _count_parameters(flat, opening)
    label = _test_label(stripped) if is_test else name.group(1)
    if not is_definition and not re.search(r"[\w>&*\]]\s+[&*]*[\w~:]+\s*$|^[~\w]+\s*$|operator", before):
        return
    functions.append(Function(label, start, end, parameters, is_definition))


def _parameter_list(flat):
    """Offset of the parenthesis that opens the parameters: the first one, or the one after operator()."""
    call_operator = re.search(r"operator\s*\(\s*\)\s*\(", flat)
    if call_operator:
        return call_operator.end() - 1
    flat = re.sub(r"\b(requires|alignas|explicit|noexcept|decltype)\s*\(", lambda m: m.group()[:-1] + " ", flat)
    opening = flat.find("(")
    return opening if opening >= 0 else None


def _test_label(head):
    match = re.search(r"\(\s*([\w]+)\s*,\s*(\w+)", head)
    return f"{match.group(1)}.{match.group(2)}" if match else "test"


def _count_parameters(flat, opening):
    depth, commas, end = 0, 0, opening
    for end in range(opening, len(flat)):
        depth += (flat[end] in "([{") - (flat[end] in ")]}")
        if depth == 0:
            break
        commas += depth == 1 and flat[end] == ","
    inside = flat[opening + 1:end].strip()
    if _USER_DATA.search(inside) and commas:
        return -1
    return 0 if inside in ("", "void") else commas + 1
