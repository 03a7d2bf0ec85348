// POST .../infer: body -> request -> model -> body.
#pragma once

#include <string>

#include "api/body.h"
#include "api/infer_call.h"

namespace sluice::api {

class RestInferHandler final : public InferHandler {
 public:
  RestInferHandler(ServerState& state, net::Exchange& exchange, std::string model, std::string version);

  // Reads the head; false when it has answered with an error.
  bool begin();
  MutableBytes body_target() override { return body_.target(); }
  void on_placed(std::size_t bytes) override { body_.placed(bytes); }
  void on_data(Bytes chunk) override;
  void on_end() override;

 private:
  Result<InferRequest> parse();
  void send_response(InferResponse response) override;
  void send_error(const Error& error) override;

  std::string model_, version_;
  BodyCollector body_;
  // What the answer's form depends on: id, outputs, binary_data_output. Without inputs.
  InferRequest asked_;
  bool failed_ = false;
};

}  // namespace sluice::api
