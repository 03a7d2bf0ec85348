"""The protocol's messages and calls for Python's gRPC, made from proto/inference.proto when first needed.

    stub = oip_grpc.Stub(grpc.insecure_channel("127.0.0.1:8001"))
    stub.ModelInfer(stub.messages.ModelInferRequest(model_name="m", ...), timeout=10)
"""

import importlib
import os
import subprocess
import sys
import tempfile

PROTO_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "proto")
SERVICE = "inference.GRPCInferenceService"


def load_messages():
    """Debian's protoc (protobuf-compiler) writes a module for Debian's python3-protobuf."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={PROTO_FOLDER}", f"--python_out={folder}", "inference.proto",
                        "model_config.proto"],
                       check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("inference_pb2")
        finally:
            sys.path.remove(folder)


class Stub:
    """One callable for each unary call of the service, by its name."""

    def __init__(self, channel, messages=None):
        self.messages = messages or load_messages()
        service = self.messages.DESCRIPTOR.services_by_name[SERVICE.rpartition(".")[2]]
        for method in service.methods:
            answer = getattr(self.messages, method.output_type.name)
            setattr(self, method.name, channel.unary_unary(
                f"/{SERVICE}/{method.name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString))
