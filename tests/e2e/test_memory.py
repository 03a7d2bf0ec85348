#!/usr/bin/python3
"""20,000 mixed requests leave the resident memory within 5 % of its level after warm-up."""

import json
import random
import threading
import unittest

import grpc
import numpy as np

import harness
from harness import Repository, Server, exchange, tensor

import ocr_line
import oip_grpc

REQUESTS = 20_000
WARM_UP = 8_000
WARM_UP_PICTURES = 20  # of each worker, so that batches of every size have run: each has a workspace of its own
WORKERS = 4
MAX_GROWTH = 0.05
LENGTHS = (1, 16, 300, 5_000, 40_000)


class Worker:
    """One client: a connection of each kind, and a seed of its own."""

    def __init__(self, server, messages, seed):
        self.server, self.random = server, random.Random(seed)
        self.connection = server.connection()
        self.channel = grpc.insecure_channel(server.grpc, options=[("grpc.use_local_subchannel_pool", 1)])
        self.stub = oip_grpc.Stub(self.channel, messages)
        self.picture = ocr_line.to_tensor(ocr_line.draw("MEMORY"))
        self.kinds = [(self.rest_json, 30), (self.rest_binary, 30), (self.grpc_raw, 30), (self.rest_error, 8),
                      (self.new_connection, 2), (self.ocr, 0.2)]

    def run(self, count):
        kinds, weights = zip(*self.kinds)
        for kind in self.random.choices(kinds, weights, k=count):
            kind()

    def read_pictures(self, count):
        for _ in range(count):
            self.ocr()

    def post(self, path, body, headers=None, expect=200):
        status, _, answer = exchange(self.connection, "POST", path, body, headers)
        assert status == expect, (status, answer[:300])
        return answer

    def values(self, lengths=LENGTHS):
        return np.full(self.random.choice(lengths), self.random.random(), np.float32)

    def rest_json(self):
        self.post("/v2/models/echo/infer", json.dumps({"inputs": [tensor(self.values(LENGTHS[:3]).tolist())]}))

    def rest_binary(self, values=None, model="echo", name="INPUT0"):
        values = self.values()[np.newaxis] if values is None else values
        head = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": values.shape,
                                       "parameters": {"binary_data_size": values.nbytes}}],
                           "parameters": {"binary_data_output": True}}).encode()
        self.post(f"/v2/models/{model}/infer", head + values.tobytes(),
                  {"Inference-Header-Content-Length": str(len(head))})

    def grpc_raw(self):
        values = self.values()
        request = self.stub.messages.ModelInferRequest(model_name="echo", raw_input_contents=[values.tobytes()])
        request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, len(values)])
        assert self.stub.ModelInfer(request, timeout=30).raw_output_contents[0] == values.tobytes()

    def rest_error(self):
        self.post("/v2/models/echo/infer", json.dumps({"inputs": [tensor([1, 2], [1, 3])]}), expect=400)

    def new_connection(self):
        assert self.server.get("/v2/models/echo")[0] == 200

    def ocr(self):
        self.rest_binary(self.picture, "ocr", ocr_line.INPUT_NAME)


class MemoryTest(unittest.TestCase):
    def test_resident_memory_is_flat(self):
        repository = Repository().add_identity("echo").add_onnx("ocr", "ch_PP-OCRv4_rec_infer.onnx")
        self.addCleanup(repository.remove)
        with Server("--repository", repository.path).wait_ready() as server:
            messages = oip_grpc.load_messages()
            workers = [Worker(server, messages, seed) for seed in range(WORKERS)]
            for callers in [*range(1, WORKERS + 1)] * 2:
                self.run_all(workers[:callers], WARM_UP_PICTURES * callers, Worker.read_pictures)
            self.run_all(workers, WARM_UP)
            before = server.rss_kb()
            self.run_all(workers, REQUESTS)
            after = server.rss_kb()
            print(f"resident: {before} KiB after warm-up, {after} KiB after {REQUESTS} requests", flush=True)
            self.assertLess(after, before * (1 + MAX_GROWTH))
            self.assertEqual(server.stop(), 0)

    def run_all(self, workers, requests, work=Worker.run):
        faults = []

        def run(worker):
            try:
                work(worker, requests // len(workers))
            except Exception as error:  # whatever it is, the test fails with it
                faults.append(error)
        threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])


if __name__ == "__main__":
    harness.main()
