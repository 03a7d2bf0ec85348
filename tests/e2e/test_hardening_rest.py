#!/usr/bin/python3
"""REST requests that broke a peer: each gets its status and an error that names the cause, and the server lives."""

import json
import struct
import unittest
from pathlib import Path

import harness
from harness import Repository, Server, exchange, tensor

INFER = "/v2/models/echo/infer"
MAX_BODY_MB = 4
INT64_MAX = 9223372036854775807


class RestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository().add_identity("echo").add_identity("triple", "[ 3 ]")
        cls.repository.add_identity("bytes", datatype="TYPE_STRING")
        cls.server = Server("--repository", cls.repository.path, f"--max-body-mb={MAX_BODY_MB}").wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.repository.remove()

    def tearDown(self):
        status, answer = self.server.infer("echo", tensor([1, 2]))
        self.assertEqual((status, answer["outputs"][0]["data"]), (200, [1, 2]))

    def refused(self, body, status, *words, path=INFER, headers=None):
        """`body` gets `status` and an error that holds all of `words`."""
        got, _, answer = self.server.request("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body),
                                             headers)
        self.assertEqual(got, status, answer[:300])
        error = json.loads(answer)["error"]
        for word in words:
            self.assertIn(str(word), error)

    def refused_input(self, shape, data, status=400, words=(), **more):
        self.refused({"inputs": [{**tensor(data, shape), **more}]}, status, *words)


class ShapeTest(RestTest):
    def test_negative_dimensions(self):
        self.refused_input([-1, 3], [1, 2, 3], words=["INPUT0", "-1"])
        self.refused_input([1, -3], [1, 2, 3], words=["INPUT0", "-3"])
        self.refused_input([1, -INT64_MAX - 1], [1], words=["INPUT0"])

    def test_an_empty_batch_is_refused(self):
        self.refused_input([0, 3], [], words=["INPUT0"])

    def test_products_that_overflow(self):
        for shape in ([INT64_MAX, INT64_MAX], [2, INT64_MAX], [1, 1 << 62], [1 << 32, 1 << 32], [1, 1 << 40]):
            self.refused_input(shape, [1], words=["INPUT0"])

    def test_dimensions_that_are_no_integers(self):
        for dimension in (1.5, "1", None, [1], True, 1e300, 1 << 70):
            self.refused({"inputs": [tensor([1], [1, dimension])]}, 400)

    def test_too_many_dimensions(self):
        self.refused_input([1] * 5000, [1])

    def test_the_data_must_fill_the_shape(self):
        self.refused_input([1, 3], [1, 2], words=["INPUT0", 3, 2])
        self.refused_input([1, 3], [1, 2, 3, 4], words=["INPUT0", 3])
        self.refused_input([1, 3], [], words=["INPUT0", 3])

    def test_the_model_s_own_shape_is_named(self):
        self.refused({"inputs": [tensor([1, 2])]}, 400, "INPUT0", "3", "2", path="/v2/models/triple/infer")
        self.refused_input([3], [1, 2, 3], words=["INPUT0"])
        self.refused_input([65, 1], [1] * 65, words=["64", "65"])


class TypeTest(RestTest):
    def test_wrong_and_unknown_datatypes(self):
        self.refused_input([1, 1], [1], datatype="INT32", words=["INPUT0", "FP32", "INT32"])
        self.refused_input([1, 1], [1], datatype="FP99", words=["FP99"])
        self.refused_input([1, 1], [1], datatype=7)

    def test_values_of_another_type(self):
        for data in (["1"], [None], [True], [{}], "1", {"0": 1}, 1):
            self.refused({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": data}]}, 400)
        self.refused({"inputs": [tensor([1], datatype="BYTES")]}, 400, path="/v2/models/bytes/infer")

    def test_numbers_that_do_not_fit(self):
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "01", "+1", "0x1", "1."):
            self.refused('{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[%s]}]}' % number, 400)

    def test_fields_of_another_type(self):
        for body in ([], "text", 1, None, {}, {"inputs": {}}, {"inputs": [1]}, {"inputs": None}, {"inputs": []},
                     {"inputs": [{}]}, {"inputs": [tensor([1])], "outputs": 1},
                     {"inputs": [tensor([1])], "parameters": []}, {"inputs": [tensor([1])], "id": 5},
                     {"inputs": [{"name": 1, "datatype": "FP32", "shape": [1, 1], "data": [1]}]}):
            self.refused(body, 400)


class NameTest(RestTest):
    def test_unknown_models_versions_routes(self):
        body = {"inputs": [tensor([1])]}
        self.refused(body, 404, "nothing", path="/v2/models/nothing/infer")
        self.refused(body, 404, "9", path="/v2/models/echo/versions/9/infer")
        self.refused(body, 404, path="/v3/models/echo/infer")
        self.refused(body, 404, path="/v2/models/echo/infers")

    def test_names_that_leave_the_repository(self):
        for name in ("..", ".", "../echo", "..%2fecho", "%2e%2e", "a%00b", "a" * 300, "e cho", "echo%0d%0aX:%20y"):
            status, _, _ = self.server.request("POST", f"/v2/models/{name.replace(' ', '%20')}/infer", "{}")
            self.assertIn(status, (400, 404), name)

    def test_wrong_methods(self):
        for method, path in (("GET", INFER), ("DELETE", INFER), ("POST", "/v2/health/live"),
                             ("PUT", "/v2/models/echo")):
            status, headers, _ = self.server.request(method, path)
            self.assertEqual(status, 405, (method, path))
            self.assertTrue(headers["Allow"])

    def test_duplicate_missing_and_unknown_tensors(self):
        self.refused({"inputs": [tensor([1]), tensor([2])]}, 400, "INPUT0")
        self.refused({"inputs": [tensor([1]), tensor([1], name="MORE")]}, 400, "MORE")
        self.refused({"inputs": [tensor([1], name="OTHER")]}, 400, "OTHER")
        self.refused({"inputs": [tensor([1])], "outputs": [{"name": "NOPE"}]}, 400, "NOPE")
        self.refused({"inputs": [tensor([1])], "outputs": [{"name": "OUTPUT0"}, {"name": "OUTPUT0"}]}, 400, "OUTPUT0")

    def test_more_tensors_than_allowed(self):
        self.refused({"inputs": [tensor([1], name=f"I{i}") for i in range(2000)]}, 400)

    def test_a_client_s_text_comes_back_escaped(self):
        name = 'x"\n\u0000\u2028<script>'
        got, _, answer = self.server.request("POST", INFER, json.dumps({"inputs": [tensor([1], name=name)]}))
        self.assertEqual(got, 400)
        json.loads(answer)
        self.assertNotIn(b"\n", answer.rstrip(b"\n"))


class JsonTest(RestTest):
    def test_broken_json(self):
        whole = json.dumps({"inputs": [tensor([1, 2, 3])], "id": "\u00e9"}, ensure_ascii=False).encode()
        for cut in range(0, len(whole)):
            self.refused(whole[:cut], 400)
        for body in (whole + b"}", whole + whole, b"\xff" + whole, whole.replace(b"\xc3", b"\xff"), b"\0" * 100,
                     whole.replace(b",", b",,"), b"\xef\xbb\xbf{"):
            self.refused(body, 400)

    def test_deep_json(self):
        deep = "[" * 200_000
        self.refused(deep, 400)
        self.refused('{"a":' * 100_000, 400)
        self.refused('{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":%s1%s}]}' % (
            "[" * 5000, "]" * 5000), 400)
        self.refused('{"unknown":%s%s,"inputs":[]}' % ("[" * 5000, "]" * 5000), 400)

    def test_a_good_request_after_a_byte_of_space(self):
        body = " \n\t" + json.dumps({"inputs": [tensor([[1], [2]], [2, 1])]}) + "\n "
        status, _, answer = self.server.request("POST", INFER, body)
        self.assertEqual((status, json.loads(answer)["outputs"][0]["data"]), (200, [1, 2]))


class BinaryTest(RestTest):
    def body(self, size, raw, json_length=None):
        head = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2],
                                       "parameters": {"binary_data_size": size}}]}).encode()
        return head + raw, {"Inference-Header-Content-Length": str(len(head) if json_length is None else json_length)}

    def refused_binary(self, size, raw, json_length=None):
        body, headers = self.body(size, raw, json_length)
        self.refused(body, 400, headers=headers)

    def test_a_good_one(self):
        body, headers = self.body(8, struct.pack("<ff", 1, 2))
        status, _, answer = self.server.request("POST", INFER, body, headers)
        self.assertEqual((status, json.loads(answer)["outputs"][0]["data"]), (200, [1, 2]))

    def test_sizes_that_do_not_agree(self):
        raw = struct.pack("<ff", 1, 2)
        for size, data in ((8, raw[:7]), (8, raw + b"x"), (7, raw), (7, raw[:7]), (4, raw), (0, raw), (0, b""),
                           (-8, raw), (8.5, raw), ("8", raw)):
            with self.subTest(size=size, data=len(data)):
                self.refused_binary(size, data)
        body, headers = self.body(1 << 62, raw)
        self.refused(body, 413, "INPUT0", 1 << 62, headers=headers)

    def test_lengths_of_the_json_that_do_not_agree(self):
        raw = struct.pack("<ff", 1, 2)
        for length in (1, 1 << 20, 1 << 62, 1 << 70, -1, "x", "", "1e3", " 12x"):
            with self.subTest(length=length):
                self.refused_binary(8, raw, length)

    def test_data_beside_binary_data(self):
        raw = struct.pack("<f", 1)
        head = json.dumps({"inputs": [{**tensor([1]), "parameters": {"binary_data_size": 4}}]}).encode()
        self.refused(head + raw, 400, headers={"Inference-Header-Content-Length": str(len(head))})

    def test_strings_with_lengths_beyond_the_end(self):
        for raw in (b"\x05\0\0\0abc", b"\xff\xff\xff\xff", b"\x01\0", b"\0\0\0\x80a"):
            head = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "BYTES", "shape": [1, 1],
                                           "parameters": {"binary_data_size": len(raw)}}]}).encode()
            self.refused(head + raw, 400, path="/v2/models/bytes/infer",
                         headers={"Inference-Header-Content-Length": str(len(head))})


class ConnectionTest(RestTest):
    def test_thousands_of_chunks(self):
        body = json.dumps({"inputs": [tensor(list(range(1000)))]}).encode()
        with self.server.socket() as peer:
            peer.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            peer.sendall(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
            answer = peer.makefile("rb")
            self.assertIn(b" 200 ", answer.readline())

    def test_a_body_over_the_limit(self):
        size = (MAX_BODY_MB << 20) + 1
        self.refused(b"x" * size, 413, MAX_BODY_MB << 20)
        with self.server.socket() as peer:  # refused by its length, before a byte of it came
            peer.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 60}\r\n\r\n".encode())
            self.assertIn(b" 413 ", peer.makefile("rb").readline())

    def test_huge_headers(self):
        with self.server.socket() as peer:
            peer.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (1 << 17) + b"\r\n\r\n")
            self.assertIn(b" 431 ", peer.makefile("rb").readline())

    def test_bytes_that_are_no_http(self):
        for data in (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 64, b"\r\n\r\nnot http\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100, b"GET /v2\r\n\r\n"):
            with self.server.socket() as peer:
                peer.sendall(data)
                while peer.recv(65536):
                    pass

    def test_conflicting_lengths(self):
        with self.server.socket() as peer:
            peer.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "0\r\n\r\n".encode())
            self.assertIn(b" 400 ", peer.makefile("rb").readline())

    def test_clients_that_close_in_the_middle(self):
        body = json.dumps({"inputs": [tensor(list(range(2000)))]}).encode()
        head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        whole = head + body
        for cut in range(1, len(whole), len(whole) // 200):
            with self.server.socket() as peer:
                peer.sendall(whole[:cut])

    def test_a_get_with_a_body(self):
        connection = self.server.connection()
        for _ in range(2):  # the body does not become the next request
            self.assertEqual(exchange(connection, "GET", "/v2/health/live", b"GET /x HTTP/1.1\r\n\r\n")[0], 200)
        connection.close()

    def test_descriptors_are_given_back(self):
        descriptors = Path(f"/proc/{self.server.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        for _ in range(300):
            self.server.get("/v2/health/live")
        harness.until("descriptors closed", lambda: len(list(descriptors.iterdir())) <= before + 2, 10)


del RestTest  # its own tests are those of the classes above

if __name__ == "__main__":
    harness.main()
