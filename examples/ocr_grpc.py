#!/usr/bin/python3
"""Reads a line of text from a picture over gRPC: ModelInfer, the tensors as raw_input_contents."""

import argparse
import sys

import grpc
import numpy as np
from PIL import Image

import ocr_line
import oip_grpc

TIMEOUT_S = 60
MAX_MESSAGE_BYTES = 1 << 30  # the output is 26 KB a step, above gRPC's default of 4 MiB for long lines


def infer(address, model, tensor):
    """The model's only output, as an array."""
    options = [(f"grpc.max_{way}_message_length", MAX_MESSAGE_BYTES) for way in ("send", "receive")]
    with grpc.insecure_channel(address, options=options) as channel:
        stub = oip_grpc.Stub(channel)
        request = stub.messages.ModelInferRequest(model_name=model)
        request.inputs.add(name=ocr_line.INPUT_NAME, datatype="FP32", shape=tensor.shape)
        request.raw_input_contents.append(tensor.tobytes())
        response = stub.ModelInfer(request, timeout=TIMEOUT_S)
    return np.frombuffer(response.raw_output_contents[0], np.float32).reshape(response.outputs[0].shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("--address", default="127.0.0.1:8001")
    parser.add_argument("--model", default="ocr_rec")
    options = parser.parse_args()
    tensor = ocr_line.to_tensor(Image.open(options.picture))
    try:
        probabilities = infer(options.address, options.model, tensor)
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
    print(ocr_line.to_text(probabilities[0], ocr_line.load_keys()))


if __name__ == "__main__":
    main()
