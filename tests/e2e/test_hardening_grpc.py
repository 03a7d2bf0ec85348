#!/usr/bin/python3
"""gRPC requests that broke a peer: each gets its code and an error that names the cause, and the server lives."""

import struct
import unittest

import grpc

import harness
from harness import Repository, Server

import oip_grpc

INT64_MAX = 9223372036854775807
CODE = grpc.StatusCode


class GrpcTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository().add_identity("echo").add_identity("bytes", datatype="TYPE_STRING")
        cls.repository.add_slow("slow", busy_us=1_500_000)
        cls.server = Server("--repository", cls.repository.path).wait_ready()
        cls.channel = grpc.insecure_channel(cls.server.grpc)
        cls.stub = oip_grpc.Stub(cls.channel)
        cls.messages = cls.stub.messages

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.server.close()
        cls.repository.remove()

    def tearDown(self):
        answer = self.call(self.request([1, 2], [struct.pack("<ff", 1, 2)]))
        self.assertEqual(answer.raw_output_contents[0], struct.pack("<ff", 1, 2))

    def request(self, shape, raw, model="echo", datatype="FP32", name="INPUT0"):
        request = self.messages.ModelInferRequest(model_name=model)
        request.inputs.add(name=name, datatype=datatype, shape=shape)
        request.raw_input_contents.extend(raw)
        return request

    def call(self, request, timeout=harness.ANSWER_WITHIN_S):
        return self.stub.ModelInfer(request, timeout=timeout)

    def refused(self, request, code, *words, timeout=harness.ANSWER_WITHIN_S):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(request, timeout)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        for word in words:
            self.assertIn(word, caught.exception.details())

    def test_health_and_metadata(self):
        m = self.messages
        self.assertTrue(self.stub.ServerLive(m.ServerLiveRequest()).live)
        self.assertTrue(self.stub.ServerReady(m.ServerReadyRequest()).ready)
        self.assertTrue(self.stub.ModelReady(m.ModelReadyRequest(name="echo")).ready)
        self.assertEqual(self.stub.ServerMetadata(m.ServerMetadataRequest()).name, "sluice")
        model = self.stub.ModelMetadata(m.ModelMetadataRequest(name="echo"))
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in model.inputs], [("INPUT0", "FP32", [-1, -1])])

    def test_the_http_port_speaks_it_too(self):
        with grpc.insecure_channel(self.server.http) as channel:
            stub = oip_grpc.Stub(channel, self.messages)
            self.assertTrue(stub.ServerLive(self.messages.ServerLiveRequest(), timeout=10).live)

    def test_shapes(self):
        raw = [struct.pack("<f", 1)]
        for shape in ([-1, 1], [1, -1], [0, 1], [INT64_MAX, INT64_MAX], [2, INT64_MAX], [1, 1 << 62],
                      [1 << 32, 1 << 32], [1, 1 << 40], [], [1], [1] * 3000, [65, 1]):
            with self.subTest(shape[:4]):
                self.refused(self.request(shape, raw), CODE.INVALID_ARGUMENT, "INPUT0")

    def test_sizes(self):
        for raw in (b"", b"1234567", b"123456789", b"x" * 4096):
            self.refused(self.request([1, 2], [raw]), CODE.INVALID_ARGUMENT, "INPUT0")
        self.refused(self.request([1, 2], []), CODE.INVALID_ARGUMENT)
        self.refused(self.request([1, 1], [b"1234", b"1234"]), CODE.INVALID_ARGUMENT)
        for raw in (b"\x05\0\0\0abc", b"\xff\xff\xff\xff", b"\x01\0"):
            self.refused(self.request([1, 1], [raw], "bytes", "BYTES"), CODE.INVALID_ARGUMENT, "INPUT0")

    def test_types_and_names(self):
        raw = [struct.pack("<f", 1)]
        self.refused(self.request([1, 1], raw, datatype="INT32"), CODE.INVALID_ARGUMENT, "FP32", "INT32")
        self.refused(self.request([1, 1], raw, datatype="FP99"), CODE.INVALID_ARGUMENT, "FP99")
        self.refused(self.request([1, 1], raw, name="OTHER"), CODE.INVALID_ARGUMENT, "OTHER")
        self.refused(self.request([1, 1], raw, model="nothing"), CODE.NOT_FOUND, "nothing")
        self.refused(self.request([1, 1], raw, model="../echo"), CODE.NOT_FOUND, "../echo")
        request = self.request([1, 1], raw)
        request.model_version = "9"
        self.refused(request, CODE.NOT_FOUND, "9")

    def test_duplicates(self):
        request = self.request([1, 1], [b"1234", b"1234"])
        request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1])
        self.refused(request, CODE.INVALID_ARGUMENT, "INPUT0")
        request = self.request([1, 1], [b"1234"])
        request.outputs.add(name="OUTPUT0")
        request.outputs.add(name="OUTPUT0")
        self.refused(request, CODE.INVALID_ARGUMENT, "OUTPUT0")

    def test_contents(self):
        request = self.request([1, 2], [])
        request.inputs[0].contents.fp32_contents.extend([3, 4])
        self.assertEqual(self.call(request).raw_output_contents[0], struct.pack("<ff", 3, 4))
        request.raw_input_contents.append(struct.pack("<ff", 3, 4))
        self.refused(request, CODE.INVALID_ARGUMENT)
        request = self.request([1, 2], [])
        request.inputs[0].contents.int_contents.extend([3, 4])
        self.refused(request, CODE.INVALID_ARGUMENT, "INPUT0")

    def raw_call(self, path, data):
        call = self.channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        with self.assertRaises(grpc.RpcError) as caught:
            call(data, timeout=harness.ANSWER_WITHIN_S)
        return caught.exception.code()

    def test_bytes_that_are_no_message(self):
        good = self.request([1, 2], [struct.pack("<ff", 1, 2)]).SerializeToString()
        path = f"/{oip_grpc.SERVICE}/ModelInfer"
        for data in (b"\xff" * 64, b"\x0a\xff\xff\xff\xff\x0f", good[:-1], good + b"\x3a\x80\x80\x80\x80\x08",
                     b"\x0b" * 20_000):
            self.assertIn(self.raw_call(path, data), (CODE.INVALID_ARGUMENT, CODE.INTERNAL))

    def test_methods_that_are_not_there(self):
        self.assertEqual(self.raw_call(f"/{oip_grpc.SERVICE}/NoSuchCall", b""), CODE.UNIMPLEMENTED)
        self.assertEqual(self.raw_call("/no.such.Service/Call", b""), CODE.UNIMPLEMENTED)

    def test_a_deadline_passes(self):
        request = self.request([1, 1], [b"1234"], model="slow")
        self.refused(request, CODE.DEADLINE_EXCEEDED, timeout=0.3)

    def test_cancelled_calls_leave_nothing_behind(self):
        request = self.request([1, 1], [b"1234"], model="slow")
        calls = [self.stub.ModelInfer.future(request, timeout=20) for _ in range(20)]
        for call in calls:
            call.cancel()
        harness.until("queue empty", lambda: harness.sample(
            self.server.scrape()[1], "nv_inference_pending_request_count", model="slow") == 0, harness.ANSWER_WITHIN_S)


if __name__ == "__main__":
    harness.main()
