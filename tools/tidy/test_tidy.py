#!/usr/bin/env python3
"""Each rule fires on a bad sample and stays quiet on the good one beside it."""

import unittest
from pathlib import Path

import banned
import budgets
import coroutines
import floors
import hygiene
from cpp_functions import find_functions
from source import Source, Tree

CMAKE = """
sluice_folder(base)                                  # F0
sluice_folder(io DEPS base PRIVATE_DEPS OpenSSL::SSL)
sluice_folder(wire DEPS base PRIVATE_DEPS simdjson::simdjson)
sluice_folder(net DEPS io wire TEST_DEPS sim)
sluice_folder(engine DEPS base EXCLUDE "/engine/onnx/")
sluice_folder(engine/onnx DEPS engine)
sluice_folder(sim DEPS base)
"""


def tree(path, text, cmake=CMAKE):
    return Tree(Path("."), [Source("src/CMakeLists.txt", cmake), Source(path, text)])


def rules(findings):
    return [f.rule for f in findings]


class SourceTest(unittest.TestCase):
    def test_blanks_comments_strings_and_directives_in_place(self):
        text = 'a; // getenv(\n/* {\n */ b("}\\"{", \'{\', R"x(\n{)x"); c = 1\'000;\n#define X {\n'
        code = Source("src/io/a.cc", text).code
        self.assertEqual(len(code), len(text))
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertNotIn("{", code)
        self.assertNotIn("getenv", code)
        self.assertIn("c = 1 000;", code)


    def test_a_script_without_a_suffix_is_known_by_its_first_line(self):
        self.assertEqual(Source("bench/a", "#!/usr/bin/env bash\n").suffix, ".sh")
        self.assertEqual(Source("bench/a", "#!/usr/bin/python3\n").suffix, ".py")
        self.assertEqual(Source("bench/a", "text\n").suffix, "")


class FloorsTest(unittest.TestCase):
    def check(self, path, text, cmake=CMAKE):
        return rules(floors.check(tree(path, text, cmake)))

    def test_an_include_goes_down(self):
        self.assertEqual(self.check("src/net/a.h", '#include "base/b.h"\n#include "net/c.h"\n'), [])
        self.assertEqual(self.check("src/base/a.h", '#include "io/loop.h"\n'), ["floors"])
        self.assertEqual(self.check("src/wire/a.cc", '#include "io/loop.h"\n'), ["floors"])

    def test_a_nested_folder_is_a_floor_of_its_own(self):
        self.assertEqual(self.check("src/engine/onnx/a.cc", '#include "engine/engine.h"\n'), [])
        self.assertEqual(self.check("src/engine/a.cc", '#include "engine/onnx/session.h"\n'), ["floors"])

    def test_a_test_may_stand_on_its_test_dependencies(self):
        self.assertEqual(self.check("src/net/a_test.cc", '#include "sim/world.h"\n'), [])
        self.assertEqual(self.check("src/net/a.cc", '#include "sim/world.h"\n'), ["floors"])

    def test_a_folder_must_be_on_the_list(self):
        self.assertEqual(self.check("src/extra/a.cc", ""), ["floors"])

    def test_headers_are_named_from_src(self):
        self.assertEqual(self.check("src/net/a.cc", '#include "server.h"\n'), ["floors"])
        self.assertEqual(self.check("src/net/a.cc", '#include "../base/b.h"\n'), ["floors"])

    def test_the_list_is_in_order(self):
        self.assertEqual(self.check("src/a/a.cc", "", "sluice_folder(a DEPS b)\nsluice_folder(b)\n"), ["floors"])

    def test_a_comment_is_no_include(self):
        self.assertEqual(self.check("src/base/a.cc", '// #include "io/loop.h"\n'), [])

    def test_third_party_rooms(self):
        for header, room, elsewhere in [
                ("boost/asio.hpp", "src/io/a.cc", "src/net/a.cc"), ("asio/ip/tcp.hpp", "src/io/a.cc", "src/net/a.cc"),
                ("openssl/ssl.h", "src/io/a.cc", "src/net/a.cc"), ("sys/socket.h", "src/io/a.cc", "src/net/a.cc"),
                ("nghttp2/nghttp2.h", "src/net/a.cc", "src/io/a.cc"), ("llhttp.h", "src/wire/a.cc", "src/io/a.cc"),
                ("onnxruntime_c_api.h", "src/engine/onnx/a.cc", "src/engine/a.cc"),
                ("onnxruntime/onnxruntime_cxx_api.h", "src/engine/onnx/a.cc", "src/engine/a.cc"),
                ("google/protobuf/message.h", "src/wire/a.cc", "src/net/a.cc"),
                ("inference.pb.h", "src/wire/a.cc", "src/net/a.cc"), ("simdjson.h", "src/wire/a.cc", "src/net/a.cc")]:
            with self.subTest(header):
                self.assertEqual(self.check(room, f"#include <{header}>\n"), [])
                self.assertEqual(self.check(elsewhere, f"#include <{header}>\n"), ["rooms"])
        self.assertEqual(self.check("src/net/a.cc", "#include <grpcpp/grpcpp.h>\n"), ["rooms"])

    def test_a_generated_header_in_quotes_has_its_room_too(self):
        self.assertEqual(self.check("src/net/a.cc", '#include "inference.pb.h"\n'), ["rooms"])


class BannedTest(unittest.TestCase):
    def check(self, text, path="src/net/a.cc"):
        return rules(banned.check(tree(path, text)))

    def test_each_call_fires_outside_its_room_and_not_inside(self):
        for call in ["std::chrono::steady_clock::now()", "std::chrono::system_clock :: now()", "time(nullptr)",
                     "::time(nullptr)", "std::time(0)", "gettimeofday(&t, nullptr)", "clock_gettime(CLOCK_MONOTONIC, &t)",
                     "rand()", "std::rand()", "srand(1)", "std::random_device()", "std::mt19937()",
                     "std::thread(f)", "std::jthread(f)", "std::async(f)", "pthread_create(&t, 0, f, 0)",
                     "getenv(name)", "std::getenv(name)", "std::this_thread::sleep_for(d)", "sleep(1)", "usleep(5)",
                     "system(line)", "popen(line, mode)", "fork()", "execvp(a, b)"]:
            with self.subTest(call):
                self.assertEqual(self.check(f"void f() {{ auto x = {call}; }}\n"), ["banned"])
                self.assertEqual(self.check(f"void f() {{ return {call}; }}\n", "sim/a.cc"), ["banned"])
                self.assertEqual(self.check(f"void f() {{ {call}; }}\n", "src/io/a.cc"), [])

    def test_what_only_looks_like_one_is_quiet(self):
        for code in ["timers.time(x)", "p->rand()", "queue_time(x)", "// getenv(x)", 'log("sleep(1)")',
                     "std::thread::id id", "Random random(7)", "const Duration& time(x)", "my::system(x)"]:
            with self.subTest(code):
                self.assertEqual(self.check(f"void f() {{ {code}\n; }}\n"), [])

    def test_the_command_line_reads_the_environment(self):
        self.assertEqual(self.check('const char* home = getenv("HOME");', "src/cli/a.cc"), [])

    def test_a_unit_test_may_race_but_not_look_at_the_clock(self):
        self.assertEqual(self.check("std::thread t(f);", "src/net/a_test.cc"), [])
        self.assertEqual(self.check("auto t = std::chrono::steady_clock::now();", "src/net/a_test.cc"), ["banned"])
        self.assertEqual(self.check("std::this_thread::sleep_for(d);", "src/net/a_test.cc"), ["banned"])


class CoroutinesTest(unittest.TestCase):
    def check(self, text):
        return rules(coroutines.check(tree("src/io/a.cc", text)))

    def test_an_aggregate_argument(self):
        self.assertEqual(self.check("co_await send(Message{1, 2});"), ["coroutine"])
        self.assertEqual(self.check("auto x = co_await send(to, {.a = 1});"), ["coroutine"])
        self.assertEqual(self.check("f(Message{1}, co_await next());"), ["coroutine"])
        self.assertEqual(self.check("Message m{1, 2};\nco_await send(std::move(m));"), [])
        self.assertEqual(self.check("co_await send(Message(1, 2));"), [])

    def test_a_temporary_lambda_with_captures(self):
        self.assertEqual(self.check("co_await run([x](int y) { return x + y; });"), ["coroutine"])
        self.assertEqual(self.check("co_await run(1, [&] { return x; });"), ["coroutine"])
        self.assertEqual(self.check("auto task = [x] { return x; };\nco_await run(task);"), [])
        self.assertEqual(self.check("co_await run([] { return 1; });"), [])

    def test_a_lambda_coroutine_with_captures(self):
        self.assertEqual(self.check("spawn(loop, [this]() -> awaitable<void> { co_return; });"), ["coroutine"])
        self.assertEqual(self.check("spawn(loop, []() -> awaitable<void> { co_return; });"), [])

    def test_a_coroutine_takes_values(self):
        self.assertEqual(self.check("awaitable<void> serve(const Request& r) { co_return; }"), ["coroutine"])
        self.assertEqual(self.check("awaitable<int> read(std::string_view s) { co_return 1; }"), ["coroutine"])
        self.assertEqual(self.check("awaitable<int> read(std::string s) { co_return 1; }"), [])


class FunctionsTest(unittest.TestCase):
    def names(self, code):
        return [(f.name, f.parameters) for f in find_functions(code)]

    def test_finds_functions_of_all_sorts(self):
        code = """
namespace a { namespace {
struct P : Base<int(int)> { int x = 0; std::array<int, 2> y{1, 2}; P(int a, int b) : x{a}, z_(b) { go(); } ~P() {} };
const std::map<int, int> kTable = {{1, 2}, {3, 4}};
template <class T, class U> auto f(std::map<T, U> m, int (*g)(int, int)) -> std::pair<T, U> { if (m) { g(1, 2); } }
bool operator<(const P& a, const P& b) { return a.x < b.x; }
int P::get(int a) const noexcept { return [&](int b, int c) { return b; }(a, 1); }
void P::operator()(int a) { }
enum class E { kA, kB };
}}
"""
        self.assertEqual(self.names(code), [("P", 2), ("~P", 0), ("f", 2), ("operator_", 2), ("P::get", 1),
                                            ("operator()", 1)])

    def test_finds_declarations_but_no_variables(self):
        code = "class A {\n public:\n  virtual void f(int a, std::map<int, int> b) = 0;\n  A(int a);\n  int x = g(1, 2);\n};\n"
        self.assertEqual(self.names(code), [("f", 2), ("A", 1)])

    def test_a_c_library_s_callback_is_not_counted(self):
        self.assertEqual(self.names("int on_data(S* s, int a, int b, int c, int d, void* user_data) {}"),
                         [("on_data", -1)])

    def test_a_test_macro_has_no_parameters(self):
        self.assertEqual(self.names("TEST(Alpha, Beta) { int x; }"), [("Alpha.Beta", -1)])


class BudgetsTest(unittest.TestCase):
    def check(self, text, path="src/io/a.cc", baseline=None):
        return rules(budgets.check(tree(path, text), baseline or {}))

    def test_a_file(self):
        self.assertEqual(self.check("\n" * 500), [])
        self.assertEqual(self.check("\n" * 501), ["file-lines"])

    def test_a_function(self):
        self.assertEqual(self.check("void f() {\n" + "  g();\n" * 58 + "}\n"), [])
        self.assertEqual(self.check("void f() {\n" + "  g();\n" * 59 + "}\n"), ["function-lines"])
        self.assertEqual(self.check("def f():\n" + "    g()\n" * 60, "tools/a.py"), ["function-lines"])

    def test_parameters(self):
        self.assertEqual(self.check("void f(int a, int b, int c, int d, int e);\n"), [])
        self.assertEqual(self.check("void f(int a, int b, int c, int d, int e, std::map<int, int> f);\n"), ["parameters"])
        self.assertEqual(self.check("def f(a, b, c, d, *, e, f):\n    pass\n", "tools/a.py"), ["parameters"])
        self.assertEqual(self.check("def f(self, a, b, c, d, e):\n    pass\n", "tools/a.py"), [])

    def test_a_folder(self):
        sources = [Source("src/CMakeLists.txt", CMAKE)]
        crowded = Tree(Path("."), sources, {Path("./src/io"): 26, Path("./src/net"): 25})
        self.assertEqual(rules(budgets.check(crowded, {})), ["folder-entries"])

    def test_the_ratchet_holds_and_only_shrinks(self):
        text = "\n" * 510
        at = {"file-lines": {"src/io/a.cc": 510}}
        self.assertEqual(self.check(text, baseline=at), [])
        self.assertEqual(self.check(text + "\n", baseline=at), ["file-lines"])
        self.assertEqual(self.check("\n" * 505, baseline=at), ["file-lines"])
        self.assertEqual(budgets.shrink(tree("src/io/a.cc", "\n" * 505), at), {"file-lines": {"src/io/a.cc": 505}})
        self.assertEqual(budgets.shrink(tree("src/io/a.cc", "\n" * 520), at), at)
        self.assertEqual(budgets.shrink(tree("src/io/a.cc", "\n"), at), {})
        self.assertEqual(budgets.shrink(tree("src/io/b.cc", text), {}), {})


class HygieneTest(unittest.TestCase):
    def check(self, text, path="src/io/a.cc"):
        return rules(hygiene.check(tree(path, text)))

    def test_a_header_opens_with_a_contract(self):
        self.assertEqual(self.check("// What it is.\n#pragma once\nint x;\n", "src/io/a.h"), [])
        self.assertEqual(self.check("#pragma once\n// What it is.\nint x;\n", "src/io/a.h"), [])
        self.assertEqual(self.check("// What it is.\nint x;\n", "src/io/a.h"), ["header"])
        self.assertEqual(self.check("#pragma once\n#include <string>\n// later\n", "src/io/a.h"), ["header"])

    def test_nothing_is_left_for_later(self):
        self.assertEqual(self.check("// TODO: more\n"), ["unfinished"])
        self.assertEqual(self.check("FIXME\n", "docs/a.md"), ["unfinished"])
        self.assertEqual(self.check("Todos y nada\n", "docs/a.md"), [])

    def test_no_path_of_a_machine(self):
        self.assertEqual(self.check("cd /root/x\n", "scripts/a.sh"), ["machine"])
        self.assertEqual(self.check("see /home/ann/x\n", "docs/a.md"), ["machine"])
        self.assertEqual(self.check('cd "$HOME/work/x"; ls ./work/a\n', "scripts/a.sh"), [])

    def test_no_host_in_a_script(self):
        self.assertEqual(self.check("curl https://example.org/x\n", "scripts/a.sh"), ["machine"])
        self.assertEqual(self.check("curl http://127.0.0.1:8000/v2\n", "scripts/a.sh"), [])

    def test_columns(self):
        self.assertEqual(self.check("x" * 120 + "\n"), [])
        self.assertEqual(self.check("int a;\n" + "x" * 121 + "\n"), ["columns"])


if __name__ == "__main__":
    unittest.main()
