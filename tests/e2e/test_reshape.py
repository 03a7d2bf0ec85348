#!/usr/bin/python3
"""Triton's reshape: clients see the configuration's dims, the ONNX model its own, also where the ranks differ."""

import unittest

import harness
from harness import Repository, Server, tensor

FLAT = 3 * 48 * 192
CONFIG = f"""max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: {FLAT} reshape {{ shape: [ 3, 48, 192 ] }} }}
output {{ name: "softmax_0.tmp_0" data_type: TYPE_FP32 dims: [ 1, 2 ] reshape {{ shape: [ 2 ] }} }}
"""


class ReshapeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository()
        cls.repository.add_onnx("plain", "ch_ppocr_mobile_v2.0_cls_infer.onnx")
        cls.repository.add_onnx("flat", "ch_ppocr_mobile_v2.0_cls_infer.onnx", CONFIG)
        cls.server = Server("--repository", cls.repository.path).wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.repository.remove()

    def infer(self, model, shape):
        values = [0.25 + (i % 7) / 20 for i in range(2 * FLAT)]
        return self.server.infer(model, tensor(values, shape, name="x"))

    def test_a_flat_input_gives_what_the_models_own_shape_gives(self):
        status, flat = self.infer("flat", [2, FLAT])
        self.assertEqual(status, 200, flat)
        self.assertEqual(flat["outputs"][0]["shape"], [2, 1, 2])
        status, plain = self.infer("plain", [2, 3, 48, 192])
        self.assertEqual(status, 200, plain)
        self.assertEqual(flat["outputs"][0]["data"], plain["outputs"][0]["data"])

    def test_the_models_own_shape_is_not_the_configurations(self):
        status, answer = self.infer("flat", [2, 3, 48, 192])
        self.assertEqual(status, 400)
        self.assertIn(str(FLAT), answer["error"])


if __name__ == "__main__":
    harness.main()
