#!/usr/bin/python3
"""gRPC of Python (Debian's python3-grpcio) against SLUICE_GRPC."""

import os
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import harness  # it finds oip_grpc

import oip_grpc

ANSWER_WITHIN_S = 10
DEADLINE_S = 0.05  # of a call that takes 0.4 s
CALLS_AT_ONCE = 64
CODE = grpc.StatusCode

# name -> datatype, field of InferTensorContents, values, the bytes of a raw tensor
TENSORS = {
    "fp32": ("FP32", "fp32_contents", [1, 2.5, -3], struct.pack("<3f", 1, 2.5, -3)),
    "int64": ("INT64", "int64_contents", [1, -2, 2**53 + 1], struct.pack("<3q", 1, -2, 2**53 + 1)),
    "bytes": ("BYTES", "bytes_contents", [b"one", b"", b"t\0wo"], b"\3\0\0\0one\0\0\0\0\4\0\0\0t\0wo"),
    "bool": ("BOOL", "bool_contents", [True, False, True], b"\1\0\1"),
    "uint8": ("UINT8", "uint_contents", [0, 7, 255], b"\0\7\xff"),
}


def load_health():
    """The module of proto/health.proto, as oip_grpc makes that of the inference protocol."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={oip_grpc.PROTO_FOLDER}", f"--python_out={folder}", "health.proto"],
                       check=True)
        sys.path.insert(0, folder)
        try:
            import health_pb2
            return health_pb2
        finally:
            sys.path.remove(folder)


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(os.environ["SLUICE_GRPC"])
        cls.stub = oip_grpc.Stub(cls.channel)
        cls.messages = cls.stub.messages

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def call(self, method, timeout=ANSWER_WITHIN_S, **fields):
        request = getattr(self.messages, f"{method}Request")(**fields)
        return getattr(self.stub, method)(request, timeout=timeout)

    def refused(self, code, *words):
        """A context whose call must end with `code` and a text that holds `words`."""
        return Refused(self, code, words)

    def request(self, name, model=None, shape=(1, 3), raw=None, typed=None):
        datatype, field, _, _ = TENSORS[name]
        request = self.messages.ModelInferRequest(model_name=model or name, id="p-1")
        tensor = request.inputs.add(name="INPUT0", datatype=datatype, shape=shape)
        if typed is not None:
            getattr(tensor.contents, field).extend(typed)
        if raw is not None:
            request.raw_input_contents.append(raw)
        return request

    def infer(self, request, timeout=ANSWER_WITHIN_S):
        return self.stub.ModelInfer(request, timeout=timeout)

    def check(self, answer, name, model=None):
        datatype, _, _, raw = TENSORS[name]
        self.assertEqual((answer.model_name, answer.model_version, answer.id), (model or name, "1", "p-1"))
        self.assertEqual([(o.name, o.datatype, list(o.shape)) for o in answer.outputs], [("OUTPUT0", datatype, [1, 3])])
        self.assertEqual(list(answer.raw_output_contents), [raw])


class Refused:
    def __init__(self, case, code, words):
        self.case, self.code, self.words = case, code, words

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        self.case.assertIsInstance(error, grpc.RpcError, "the call was not refused")
        self.case.assertEqual(error.code(), self.code, error.details())
        for word in self.words:
            self.case.assertIn(word, error.details())
        return True


class InferTest(ClientTest):
    def test_typed_contents(self):
        for name, (_, _, values, _) in TENSORS.items():
            with self.subTest(name):
                self.check(self.infer(self.request(name, typed=values)), name)

    def test_raw_contents(self):
        for name, (_, _, _, raw) in TENSORS.items():
            with self.subTest(name):
                self.check(self.infer(self.request(name, raw=raw)), name)

    def test_a_chosen_output_and_version(self):
        request = self.request("fp32", raw=TENSORS["fp32"][3])
        request.model_version = "1"
        request.outputs.add(name="OUTPUT0")
        self.check(self.infer(request), "fp32")

    def test_a_large_tensor(self):
        raw = os.urandom(3 << 20)
        answer = self.infer(self.request("uint8", shape=[1, len(raw)], raw=raw))
        self.assertEqual(answer.raw_output_contents[0], raw)

    def test_calls_at_once(self):
        def echo(i):
            answer = self.infer(self.request("uint8", shape=[1, 1], raw=bytes([i])))
            return answer.raw_output_contents[0]

        with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
            self.assertEqual(list(pool.map(echo, range(CALLS_AT_ONCE))), [bytes([i]) for i in range(CALLS_AT_ONCE)])


class DescriptionTest(ClientTest):
    def test_server(self):
        self.assertTrue(self.call("ServerLive").live)
        self.assertTrue(self.call("ServerReady").ready)
        metadata = self.call("ServerMetadata")
        self.assertEqual(metadata.name, "sluice")
        self.assertRegex(metadata.version, r"^\d+\.\d+\.\d+")

    def test_models(self):
        for name, (datatype, *_) in TENSORS.items():
            with self.subTest(name):
                self.assertTrue(self.call("ModelReady", name=name).ready)
                metadata = self.call("ModelMetadata", name=name)
                self.assertEqual((metadata.name, list(metadata.versions)), (name, ["1"]))
                for tensors, tensor in ((metadata.inputs, "INPUT0"), (metadata.outputs, "OUTPUT0")):
                    self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in tensors],
                                     [(tensor, datatype, [-1, -1])])

    def test_statistics(self):
        def read():
            (stats,) = self.call("ModelStatistics", name="int64").model_stats
            return stats.inference_count, stats.inference_stats.success.count, stats.inference_stats.fail.count

        before = read()
        self.infer(self.request("int64", raw=TENSORS["int64"][3]))
        self.assertEqual(read(), (before[0] + 1, before[1] + 1, before[2]))
        self.assertGreaterEqual({s.name for s in self.call("ModelStatistics").model_stats}, set(TENSORS))

    def test_health(self):
        health = load_health()
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check",
                                         request_serializer=health.HealthCheckRequest.SerializeToString,
                                         response_deserializer=health.HealthCheckResponse.FromString)
        for service in ("", oip_grpc.SERVICE):
            answer = check(health.HealthCheckRequest(service=service), timeout=ANSWER_WITHIN_S)
            self.assertEqual(answer.status, health.HealthCheckResponse.SERVING)
        with self.refused(CODE.NOT_FOUND, "nothing"):
            check(health.HealthCheckRequest(service="nothing"), timeout=ANSWER_WITHIN_S)


class ErrorTest(ClientTest):
    def test_unknown_models(self):
        for method in ("ModelReady", "ModelMetadata", "ModelStatistics"):
            with self.subTest(method), self.refused(CODE.NOT_FOUND, "nothing"):
                self.call(method, name="nothing")
        with self.refused(CODE.NOT_FOUND, "nothing"):
            self.infer(self.request("fp32", model="nothing", raw=TENSORS["fp32"][3]))

    def test_unknown_calls(self):
        unknown = self.channel.unary_unary(f"/{oip_grpc.SERVICE}/NoSuchCall")
        with self.refused(CODE.UNIMPLEMENTED, "NoSuchCall"):
            unknown(b"", timeout=ANSWER_WITHIN_S)

    def test_wrong_shapes(self):
        raw = TENSORS["fp32"][3]
        for shape in ([1, 4], [3], [-1, 3], [2, 3], [65, 3], []):
            with self.subTest(shape), self.refused(CODE.INVALID_ARGUMENT, "INPUT0"):
                self.infer(self.request("fp32", shape=shape, raw=raw))
        with self.refused(CODE.INVALID_ARGUMENT, "INPUT0"):
            self.infer(self.request("fp32", typed=[1, 2]))

    def test_wrong_datatypes_and_names(self):
        with self.refused(CODE.INVALID_ARGUMENT, "FP32", "UINT8"):
            self.infer(self.request("uint8", model="fp32", raw=TENSORS["uint8"][3]))
        request = self.request("fp32", raw=TENSORS["fp32"][3])
        request.outputs.add(name="WRONG")
        with self.refused(CODE.INVALID_ARGUMENT, "WRONG"):
            self.infer(request)

    def test_typed_and_raw_at_once(self):
        with self.refused(CODE.INVALID_ARGUMENT):
            self.infer(self.request("fp32", typed=[1, 2, 3], raw=TENSORS["fp32"][3]))

    def test_a_compressed_message_is_unimplemented(self):
        with self.refused(CODE.UNIMPLEMENTED):
            self.stub.ModelInfer(self.request("uint8", shape=[1, 1000], raw=bytes(1000)), timeout=ANSWER_WITHIN_S,
                                 compression=grpc.Compression.Gzip)


class LifeTest(ClientTest):
    def test_a_deadline(self):
        request = self.request("fp32", model="slow", raw=TENSORS["fp32"][3])
        with self.refused(CODE.DEADLINE_EXCEEDED):
            self.infer(request, DEADLINE_S)
        self.check(self.infer(request), "fp32", "slow")

    def test_a_cancelled_call(self):
        request = self.request("fp32", model="slow", raw=TENSORS["fp32"][3])
        ended = threading.Event()
        call = self.stub.ModelInfer.future(request, timeout=ANSWER_WITHIN_S)
        call.add_done_callback(lambda _: ended.set())
        call.cancel()
        self.assertTrue(ended.wait(ANSWER_WITHIN_S))
        self.assertEqual(call.code(), CODE.CANCELLED)
        self.check(self.infer(request), "fp32", "slow")

    def test_the_http_port_takes_grpc_too(self):
        with grpc.insecure_channel(os.environ["SLUICE_HTTP"]) as channel:
            stub = oip_grpc.Stub(channel, self.messages)
            answer = stub.ModelInfer(self.request("fp32", raw=TENSORS["fp32"][3]), timeout=ANSWER_WITHIN_S)
            self.check(answer, "fp32")

    def test_trailers_come_once(self):
        answer, call = self.stub.ModelInfer.with_call(self.request("fp32", raw=TENSORS["fp32"][3]),
                                                      timeout=ANSWER_WITHIN_S)
        self.check(answer, "fp32")
        self.assertEqual(call.code(), CODE.OK)
        self.assertNotIn("grpc-status", dict(call.initial_metadata()))


if __name__ == "__main__":
    harness.main()
