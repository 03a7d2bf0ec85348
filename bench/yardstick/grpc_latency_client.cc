// A real gRPC C++ client, one call at a time: prints the latencies' median in microseconds.
//   grpc_latency_client TARGET MODEL BYTES CALLS
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "inference.grpc.pb.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: grpc_latency_client TARGET MODEL BYTES CALLS\n", stderr);
    return 2;
  }
  const std::size_t bytes = std::strtoul(argv[3], nullptr, 10);
  const int calls = std::atoi(argv[4]);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const auto channel = grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), arguments);
  const auto stub = inference::GRPCInferenceService::NewStub(channel);

  inference::ModelInferRequest request;
  request.set_model_name(argv[2]);
  auto* input = request.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype("FP32");
  input->add_shape(1);
  input->add_shape(static_cast<std::int64_t>(bytes / 4));
  request.add_raw_input_contents(std::string(bytes, 'x'));

  std::vector<double> micros;
  for (int i = 0; i < calls + calls / 10; ++i) {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    const auto start = std::chrono::steady_clock::now();
    const grpc::Status status = stub->ModelInfer(&context, request, &response);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (!status.ok()) {
      std::fprintf(stderr, "call failed: %d %s\n", status.error_code(), status.error_message().c_str());
      return 1;
    }
    if (i >= calls / 10) micros.push_back(took.count());  // the first tenth warms up
  }
  std::nth_element(micros.begin(), micros.begin() + static_cast<std::ptrdiff_t>(micros.size() / 2), micros.end());
  std::printf("p50_us %.2f\n", micros[micros.size() / 2]);
}
