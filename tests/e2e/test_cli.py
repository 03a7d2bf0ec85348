#!/usr/bin/python3
"""The command line of a user: version, models, infer, config check, bench."""

import json
import re
import unittest

import harness
from harness import Repository, Server, run


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository().add_identity("echo").add_onnx("vad", "silero_vad_half.onnx")
        cls.server = Server("--repository", cls.repository.path).wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.repository.remove()

    def test_version(self):
        ended = run("--version")
        self.assertEqual(ended.returncode, 0)
        self.assertRegex(ended.stdout, r"^sluice \d+\.\d+\.\d+\n$")

    def test_bad_usage_is_2_and_says_why(self):
        for arguments in ((), ("serve",), ("serve", "--no-such-flag"), ("infer",), ("no-such-command",)):
            ended = run(*arguments)
            self.assertEqual(ended.returncode, 2, arguments)
            self.assertTrue(ended.stderr.strip(), arguments)

    def test_models_lists_name_state_and_signature(self):
        ended = run("models", "--url", self.server.http)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"echo +1 +READY +INPUT0 FP32\[-1,-1\] -> OUTPUT0 FP32\[-1,-1\]")
        self.assertRegex(ended.stdout, r"vad +1 +READY +input FP32")

    def test_models_of_no_server_is_an_error(self):
        ended = run("models", "--url", "127.0.0.1:1")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("127.0.0.1:1", ended.stderr)

    def test_infer_over_both_protocols(self):
        for flags in ([], ["--grpc"]):
            ended = run("infer", "echo", "--url", self.server.http, "-i", "INPUT0=[[1,2.5,-3]]", *flags)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, r"OUTPUT0 FP32\[1,3\] \[1(\.0)?, ?2\.5, ?-3(\.0)?\]")

    def test_infer_prints_json(self):
        ended = run("infer", "echo", "--url", self.server.http, "-i", "INPUT0=[[4,5]]", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(ended.stdout)["outputs"][0]["data"], [4, 5])

    def test_infer_fills_in_what_the_model_needs(self):
        ended = run("infer", "vad", "--url", self.server.http, "-i", "input=random", "--shape", "input=1,512",
                    "-i", "state=zeros", "--shape", "state=2,1,128")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("output FP32[1,1]", ended.stdout)

    def test_infer_errors_name_the_cause(self):
        ended = run("infer", "nothing", "--url", self.server.http)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("nothing", ended.stderr)
        ended = run("infer", "echo", "--url", self.server.http, "-i", "WRONG=[[1]]")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("WRONG", ended.stderr)

    def test_config_check(self):
        ended = run("config", "check", self.repository.path)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("echo/1: ok", ended.stdout)
        bad = Repository().add_identity("wrong", more="max_batch_sizes: 3")
        self.addCleanup(bad.remove)
        ended = run("config", "check", bad.path)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("wrong", ended.stdout)
        self.assertIn("max_batch_sizes", ended.stdout)

    def test_config_check_prints_the_completed_configuration(self):
        ended = run("config", "check", self.repository.path, "--print")
        self.assertEqual(ended.returncode, 0)
        self.assertRegex(ended.stdout, r'name: "stateN"')

    def test_bench_measures_and_writes_json(self):
        for protocol in ("grpc", "http"):
            ended = run("bench", "echo", "--url", self.server.http, "--protocol", protocol, "--concurrency", "4",
                        "--duration", "1", "--shape", "INPUT0=1,4", "--json")
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            report = json.loads(ended.stdout)
            self.assertGreater(report["completed"], 100)
            self.assertEqual(report["failed"], 0, report)

    def test_bench_in_an_open_loop_shows_a_distribution(self):
        ended = run("bench", "echo", "--url", self.server.http, "--rate", "200", "--duration", "1",
                    "--shape", "INPUT0=1,4")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertTrue(re.search(r"p99", ended.stdout), ended.stdout)


if __name__ == "__main__":
    harness.main()
