// The yardstick: gRPC C++'s callback API with a handler that does nothing but answer; for the model "echo" it gives
// the tensor back. It prints
// "listening PORT" and runs until its standard input ends.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "inference.grpc.pb.h"

namespace {

class EmptyHandler final : public inference::GRPCInferenceService::CallbackService {
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    response->set_model_name(request->model_name());
    if (request->model_name() == "echo") {
      auto* output = response->add_outputs();
      output->set_name("OUTPUT0");
      output->set_datatype(request->inputs(0).datatype());
      *output->mutable_shape() = request->inputs(0).shape();
      response->add_raw_output_contents(request->raw_input_contents(0));
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int main() {
  EmptyHandler handler;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(&handler);
  const auto server = builder.BuildAndStart();
  if (!server) {
    std::fputs("the gRPC server did not start\n", stderr);
    return 1;
  }
  std::printf("listening %d gRPC %s\n", port, grpc::Version().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server->Shutdown();
}
