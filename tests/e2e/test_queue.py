#!/usr/bin/python3
"""The queue's bounds as a client sees them: full, too late, gone; and batches that give each its own rows."""

import threading
import unittest

import grpc

import harness
from harness import ANSWER_WITHIN_S, Repository, Server, sample, tensor, until

import oip_grpc

QUEUE_SIZE = 4
POLICY = """
dynamic_batching {
  default_queue_policy { max_queue_size: %d allow_timeout_override: true }
}
""" % QUEUE_SIZE
BATCHED = """
dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 50000 }
"""


class QueueTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository().add_slow("slow", busy_us=600_000, more=POLICY)
        cls.repository.add_identity("batched", more=BATCHED)
        cls.server = Server("--repository", cls.repository.path).wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.repository.remove()

    def moved(self, name, **labels):
        return sample(self.server.scrape()[1], name, **labels)

    def pending(self):
        return self.moved("nv_inference_pending_request_count", model="slow")

    def call(self, results, **more):
        status, headers, body = self.server.request(
            "POST", "/v2/models/slow/infer", harness.json.dumps({"inputs": [tensor([1])], **more}))
        results.append((status, headers, body))

    def fill(self):
        """One request runs and the queue is full."""
        results, threads = [], []
        while self.pending() < QUEUE_SIZE:
            thread = threading.Thread(target=self.call, args=(results,))
            thread.start()
            threads.append(thread)
            until("taken in", lambda n=len(threads): self.pending() + len(results) >= n - 1, ANSWER_WITHIN_S)
        self.addCleanup(lambda: [t.join() for t in threads])
        return results

    def test_a_full_queue_refuses_at_once_and_says_when_to_come_again(self):
        self.fill()
        refused = []
        self.call(refused)
        status, headers, body = refused[0]
        self.assertIn(status, (429, 503), body)
        self.assertGreater(int(headers["Retry-After"]), 0)
        self.assertIn(str(QUEUE_SIZE), harness.json.loads(body)["error"])
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = oip_grpc.Stub(channel)
            request = stub.messages.ModelInferRequest(model_name="slow", raw_input_contents=[b"1234"])
            request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1])
            with self.assertRaises(grpc.RpcError) as caught:
                stub.ModelInfer(request, timeout=ANSWER_WITHIN_S)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_a_request_that_waits_too_long_is_refused_and_not_run(self):
        threading.Thread(target=self.call, args=([],)).start()
        results = []
        runs = self.moved("nv_inference_exec_count", model="slow")
        until("busy", lambda: self.busy_with_one_waiting(), ANSWER_WITHIN_S)
        self.call(results, parameters={"timeout": 20_000})
        self.assertIn(results[0][0], (503, 504, 429), results[0][2])
        self.assertTrue(harness.json.loads(results[0][2])["error"])
        until("idle", lambda: self.pending() == 0, ANSWER_WITHIN_S)
        self.assertLessEqual(self.moved("nv_inference_exec_count", model="slow") - runs, 3)

    def busy_with_one_waiting(self):
        if self.pending() == 0:
            thread = threading.Thread(target=self.call, args=([],))
            thread.start()
            self.addCleanup(thread.join)
            until("taken in", lambda: True, 1)
        return self.pending() > 0

    def test_a_client_that_has_gone_leaves_the_queue(self):
        until("busy", lambda: self.busy_with_one_waiting(), ANSWER_WITHIN_S)
        before = self.moved("nv_inference_request_failure", model="slow", reason="CANCELED")
        body = harness.json.dumps({"inputs": [tensor([1])]}).encode()
        peer = self.server.socket()
        peer.sendall(f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                     + body)
        until("two wait", lambda: self.pending() >= 2, ANSWER_WITHIN_S)
        peer.close()
        until("counted as cancelled", lambda: self.moved(
            "nv_inference_request_failure", model="slow", reason="CANCELED") > before, ANSWER_WITHIN_S)

    def test_every_request_of_a_batch_gets_its_own_rows(self):
        runs = self.moved("nv_inference_exec_count", model="batched")
        faults = []

        def caller(worker):
            for i in range(40):
                rows = 1 + (worker + i) % 3
                values = [worker * 1000 + i + 0.25 * r for r in range(rows)]
                status, answer = self.server.infer("batched", tensor(values, [rows, 1]))
                if status != 200 or answer["outputs"][0]["data"] != values:
                    faults.append((values, status, answer))
        threads = [threading.Thread(target=caller, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        self.assertLess(self.moved("nv_inference_exec_count", model="batched") - runs, 12 * 40)


if __name__ == "__main__":
    harness.main()
