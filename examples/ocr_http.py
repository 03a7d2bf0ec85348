#!/usr/bin/python3
"""Reads a line of text from a picture over HTTP: one POST, the tensors as raw bytes behind the JSON."""

import argparse
import json
import sys
import urllib.error
import urllib.request

import numpy as np
from PIL import Image

import ocr_line

TIMEOUT_S = 60


def infer(url, model, tensor):
    """The model's only output, as an array."""
    raw = tensor.tobytes()
    header = json.dumps({
        "inputs": [{"name": ocr_line.INPUT_NAME, "datatype": "FP32", "shape": list(tensor.shape),
                    "parameters": {"binary_data_size": len(raw)}}],
        "parameters": {"binary_data_output": True},
    }).encode()
    request = urllib.request.Request(f"{url}/v2/models/{model}/infer", data=header + raw, headers={
        "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        body = response.read()
        json_length = int(response.headers["Inference-Header-Content-Length"])
    output = json.loads(body[:json_length])["outputs"][0]
    return np.frombuffer(body, np.float32, offset=json_length).reshape(output["shape"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", default="ocr_rec")
    options = parser.parse_args()
    tensor = ocr_line.to_tensor(Image.open(options.picture))
    try:
        probabilities = infer(options.url, options.model, tensor)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode(errors='replace')}")
    print(ocr_line.to_text(probabilities[0], ocr_line.load_keys()))


if __name__ == "__main__":
    main()
