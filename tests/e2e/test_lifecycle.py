#!/usr/bin/python3
"""A replica from start to stop: ports, readiness, signals, what a stop does to requests in flight."""

import http.client
import json
import shutil
import signal
import threading
import unittest

import harness
from harness import ANSWER_WITHIN_S, Repository, Server, exchange, sample, tensor, until

SECOND_SIGNAL_WITHIN_S = 3


class ReplicaTest(unittest.TestCase):
    def setUp(self):
        self.repository = Repository()
        self.addCleanup(self.repository.remove)

    def serve(self, *flags):
        server = Server("--repository", self.repository.path, *flags)
        self.addCleanup(server.close)
        return server


class LifecycleTest(ReplicaTest):
    def test_starts_answers_and_stops(self):
        self.repository.add_identity("echo")
        server = self.serve().wait_ready()
        for address in (server.http, server.grpc, server.metrics):
            self.assertTrue(address.startswith("127.0.0.1:"), address)
        status, answer = server.infer("echo", tensor([1, 2.5, -3]))
        self.assertEqual((status, answer["outputs"][0]["data"]), (200, [1, 2.5, -3]))
        self.assertEqual(server.stop(), 0)

    def test_serves_one_file(self):
        with Server(harness.MODELS / "silero_vad_half.onnx").wait_ready() as server:
            status, _, body = server.get("/v2/models/silero_vad_half")
            self.assertEqual(status, 200)
            self.assertEqual({i["name"] for i in json.loads(body)["inputs"]}, {"input", "state"})
            status, answer = server.infer("silero_vad_half", tensor([0.0] * 512, name="input"),
                                          tensor([0.0] * 256, [2, 1, 128], name="state"))
            self.assertEqual(status, 200, answer)
            outputs = {o["name"]: o for o in answer["outputs"]}
            self.assertEqual(outputs["output"]["shape"], [1, 1])
            self.assertTrue(0 <= outputs["output"]["data"][0] <= 1)
            self.assertEqual(server.stop(), 0)

    def test_answers_when_its_repository_has_gone(self):
        self.repository.add_onnx("vad", "silero_vad_half.onnx").add_identity("echo")
        server = self.serve().wait_ready()
        (self.repository.path / "vad").rename(self.repository.path / "gone")
        shutil.rmtree(self.repository.path / "gone")
        status, answer = server.infer("vad", tensor([0.0] * 512, name="input"),
                                      tensor([0.0] * 256, [2, 1, 128], name="state"))
        self.assertEqual(status, 200, answer)
        self.assertEqual(server.infer("echo", tensor([1]))[0], 200)

    def test_without_onnx_runtime_it_serves_the_rest(self):
        self.repository.add_onnx("vad", "silero_vad_half.onnx").add_identity("echo")
        server = self.serve("--onnxruntime", "/nowhere/libonnxruntime.so", "--no-strict-readiness").wait_ready()
        self.assertEqual(server.infer("echo", tensor([1]))[0], 200)
        status, answer = server.infer("vad", tensor([0.0], name="input"))
        self.assertEqual(status, 503)
        self.assertIn("onnxruntime", answer["error"])
        self.assertIn("/nowhere/libonnxruntime.so", server.log())

    def test_a_port_in_use_is_a_clear_error(self):
        self.repository.add_identity("echo")
        first = self.serve().wait_ready()
        for flag, address in (("--http-port", first.http), ("--grpc-port", first.grpc),
                              ("--metrics-port", first.metrics)):
            port = address.rsplit(":", 1)[1]
            flags = {"--http-port": "0", "--grpc-port": "0", "--metrics-port": "0", flag: port}
            second = harness.run("serve", "--repository", self.repository.path,
                                 *[f"{name}={value}" for name, value in flags.items()])
            self.assertEqual(second.returncode, 1)
            self.assertIn(f"127.0.0.1:{port}", second.stderr)
            self.assertIn("already in use", second.stderr)
            self.assertEqual(second.stdout, "")
        self.assertTrue(first.is_ready())

    def test_a_repository_that_is_not_there_is_a_clear_error(self):
        missing = self.repository.path / "missing"
        ended = harness.run("serve", "--repository", missing, "--http-port=0", "--grpc-port=0", "--metrics-port=0")
        self.assertEqual(ended.returncode, 1)
        self.assertIn(str(missing), ended.stderr)

    def test_a_bad_model_does_not_harm_its_neighbours(self):
        self.repository.add_identity("good")
        self.repository.add_onnx("truncated", "silero_vad_half.onnx")
        file = self.repository.path / "truncated" / "1" / "model.onnx"
        file.write_bytes(file.read_bytes()[:1000])
        self.repository.add_identity("bad_config", more="max_batch_size: many")
        server = self.serve("--no-strict-readiness").wait_ready()
        self.assertEqual(server.infer("good", tensor([7]))[0], 200)
        status, _, body = server.request("POST", "/v2/repository/index", "{}")
        self.assertEqual(status, 200)
        index = {entry["name"]: entry for entry in json.loads(body)}
        self.assertEqual(index["good"]["state"], "READY")
        for name in ("truncated", "bad_config"):
            self.assertEqual(index[name]["state"], "UNAVAILABLE")
            self.assertTrue(index[name]["reason"])
            self.assertEqual(server.infer(name, tensor([7]))[0], 503)
        self.assertEqual(server.stop(), 0)

    def test_with_a_bad_model_a_strict_replica_is_not_ready(self):
        self.repository.add_identity("good").add_identity("bad_config", more="max_batch_size: many")
        server = self.serve()
        until("good is served", lambda: server.infer("good", tensor([7]))[0] == 200, ANSWER_WITHIN_S)
        self.assertEqual(server.get("/v2/health/live")[0], 200)
        self.assertEqual(server.get("/v2/health/ready")[0], 503)


class StopTest(ReplicaTest):
    def in_flight(self, server, model, count):
        """Sends `count` requests and waits until the server has them all; their results are filled in later."""
        results = []

        def call(value):
            try:
                results.append(server.infer(model, tensor([value])))
            except (OSError, http.client.HTTPException) as error:
                results.append((0, error))
        threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        self.addCleanup(lambda: [t.join() for t in threads])

        def held():
            metrics = server.scrape()[1]
            waiting = sample(metrics, "nv_inference_pending_request_count", model=model)
            return waiting + len(results) >= count - 1  # one of them runs
        until("requests in flight", held, ANSWER_WITHIN_S)
        return threads, results

    def test_requests_in_flight_are_answered(self):
        self.repository.add_slow("slow", busy_us=100_000)
        server = self.serve().wait_ready()
        threads, results = self.in_flight(server, "slow", 12)
        self.assertEqual(server.stop(), 0)
        for thread in threads:
            thread.join()
        self.assertEqual([status for status, _ in results], [200] * 12)
        self.assertEqual(sorted(answer["outputs"][0]["data"][0] for _, answer in results), list(range(12)))

    def loading(self):
        """A server whose one model is in the middle of a warm-up of minutes, in runs of a second."""
        warmup = """model_warmup { name: "long" batch_size: 1 count: 100
  inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }"""
        self.repository.add_slow("slow", busy_us=1_000_000, more=warmup)
        server = self.serve("--exit-grace-secs", "0")
        until("loading", lambda: server.get("/v2/models/slow/ready")[0] == 503, ANSWER_WITHIN_S)
        return server

    def test_a_stop_while_a_model_loads_ends_the_load(self):
        self.assertEqual(self.loading().stop(), 0)

    def test_a_second_signal_while_a_model_loads_exits_at_once(self):
        server = self.loading()
        server.send_signal()
        until("stopping", lambda: "stopping" in server.log(), ANSWER_WITHIN_S)
        server.send_signal()
        self.assertEqual(server.wait_exit(), 1)

    def test_a_batch_that_outlasts_the_exit_timeout_is_cut(self):
        self.repository.add_slow("slow", busy_us=10_000_000)
        server = self.serve("--exit-timeout-secs", "1").wait_ready()
        self.in_flight(server, "slow", 2)
        self.assertEqual(server.stop(), 1)
        self.assertIn("drain did not end in time", server.log())

    def test_under_load_a_stop_loses_no_request_of_clients_that_watch_readiness(self):
        self.repository.add_identity("echo")
        server = self.serve().wait_ready()
        stopping, answers, faults = threading.Event(), [], []

        def load(worker):
            connection, count = server.connection(), 0
            try:
                while not stopping.is_set():
                    value = float(worker * 1_000_000 + count)
                    body = json.dumps({"inputs": [tensor([value])]})
                    status, _, answer = exchange(connection, "POST", "/v2/models/echo/infer", body)
                    if status != 200 or json.loads(answer)["outputs"][0]["data"] != [value]:
                        faults.append((status, answer))
                    count += 1
            except Exception as error:  # any way of losing a request is a fault
                faults.append(error)
            finally:
                connection.close()
                answers.append(count)
        workers = [threading.Thread(target=load, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        until("load", lambda: sample(server.scrape()[1], "nv_inference_request_success", model="echo") > 500,
              ANSWER_WITHIN_S)
        server.send_signal()
        until("readiness fails", lambda: not server.is_ready(), ANSWER_WITHIN_S)
        stopping.set()
        for worker in workers:
            worker.join()
        self.assertEqual(faults, [])
        self.assertGreater(sum(answers), 500)
        self.assertEqual(server.wait_exit(), 0)

    def test_a_second_signal_exits_at_once(self):
        self.repository.add_slow("slow", busy_us=8_000_000)
        server = self.serve().wait_ready()
        self.in_flight(server, "slow", 2)
        server.send_signal()
        until("readiness fails", lambda: not server.is_ready(), ANSWER_WITHIN_S)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_exit(SECOND_SIGNAL_WITHIN_S), 1)

    def test_interrupt_stops_as_well(self):
        self.repository.add_identity("echo")
        server = self.serve().wait_ready()
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait_exit(), 0)


if __name__ == "__main__":
    harness.main()
