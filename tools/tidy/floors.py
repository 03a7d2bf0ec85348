"""Includes only go down, and each third-party library is included in its own rooms alone.

The floors are the ones src/CMakeLists.txt gives to the linker: a folder may include itself and whatever its
DEPS reach. This file adds what the linker cannot see, the headers.
"""

import re

# What a third-party header's name looks like -> the folders that may include it.
ROOMS = [
    (re.compile(r"^(boost/)?asio(/|\.hpp)|^boost/(asio|system)"), ("src/io",), "Asio"),
    (re.compile(r"^openssl/"), ("src/io",), "OpenSSL"),
    (re.compile(r"^(sys/(socket|epoll|eventfd|timerfd)|netinet/.*|arpa/inet|netdb)(\.h)?$"), ("src/io",), "sockets"),
    (re.compile(r"^nghttp2/"), ("src/net", "src/wire"), "nghttp2"),
    (re.compile(r"^llhttp"), ("src/net", "src/wire"), "llhttp"),
    (re.compile(r"^(onnxruntime/)?onnxruntime_"), ("src/engine/onnx",), "ONNX Runtime"),
    (re.compile(r"^google/protobuf/|\.pb\.h$"), ("src/wire",), "protobuf"),
    (re.compile(r"^simdjson"), ("src/wire",), "simdjson"),
    (re.compile(r"^CLI/"), ("src/cli",), "CLI11"),
    (re.compile(r"^grpc(pp)?/"), (), "gRPC C++ (a yardstick and a client in bench/ and tests/)"),
]
_FOLDER = re.compile(r"^sluice_folder\(\s*([\w/]+)([^)]*)\)", re.MULTILINE)
_KEYWORDS = {"DEPS", "PRIVATE_DEPS", "EXCLUDE", "TEST_DEPS"}


def read_floors(cmake_text):
    """folder -> (folders it may include, folders its tests may include as well), both closed over DEPS."""
    direct, tests, reach = {}, {}, {}
    for name, arguments in _FOLDER.findall(cmake_text):
        lists, key = {k: [] for k in _KEYWORDS}, None
        for word in arguments.split():
            if word in _KEYWORDS:
                key = word
            elif key:
                lists[key].append(word)
        direct[name] = lists["DEPS"]
        tests[name] = lists["TEST_DEPS"]

    def close(name):
        if name not in reach:
            reach[name] = {name}.union(*(close(d) for d in direct.get(name, [])))
        return reach[name]

    return {n: (close(n), close(n).union(*(close(t) for t in tests[n]))) for n in direct}


def folder_of(path, floors):
    """The folder a path like "engine/onnx/session.h" belongs to: the longest that is a prefix."""
    best = [f for f in floors if path.startswith(f + "/")]
    return max(best, key=len) if best else None


def order_faults(cmake_text):
    """Folders that are listed before one they depend on: the list is to be read from the lowest floor up."""
    seen = set()
    for name, arguments in _FOLDER.findall(cmake_text):
        for word in re.split(r"PRIVATE_DEPS|EXCLUDE|TEST_DEPS", arguments)[0].split():
            if word != "DEPS" and word not in seen:
                yield name, word
        seen.add(name)


def check(tree):
    cmake = next(s for s in tree.sources if s.path == "src/CMakeLists.txt")
    floors = read_floors(cmake.text)
    for name, dep in order_faults(cmake.text):
        yield cmake.finding(cmake.text.index(f"sluice_folder({name}"), "floors",
                            f"{name} depends on {dep}, which is not on a lower line")
    for source in tree.cpp("src"):
        yield from _check_floor(source, floors)
        yield from _check_rooms(source)


def _check_floor(source, floors):
    own = folder_of(source.path.removeprefix("src/"), floors)
    if own is None:
        yield source.finding(0, "floors", "this folder is not in src/CMakeLists.txt")
        return
    allowed = floors[own][1 if source.is_test else 0]
    for header, angled, offset in source.includes:
        target = folder_of(header, floors)
        if target and target not in allowed:
            yield source.finding(offset, "floors", f'"{header}" is on a floor that {own} does not stand on')
        elif not target and not angled and not header.endswith(".pb.h"):
            yield source.finding(offset, "floors", f'"{header}": our headers are named from src/')


def _check_rooms(source):
    for header, _, offset in source.includes:
        for pattern, rooms, library in ROOMS:
            if pattern.search(header) and not source.in_any(rooms):
                where = ", ".join(rooms) if rooms else "nowhere in src/"
                yield source.finding(offset, "rooms", f"<{header}>: {library} is included in {where}")
