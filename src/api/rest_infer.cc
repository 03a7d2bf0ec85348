#include "api/rest_infer.h"

#include <fmt/format.h>

#include "api/errors.h"

namespace sluice::api {

RestInferHandler::RestInferHandler(ServerState& state, net::Exchange& exchange, std::string model, std::string version)
    : InferHandler(state, exchange),
      model_(std::move(model)),
      version_(std::move(version)),
      body_(state.arena, state.max_body_bytes) {}

bool RestInferHandler::begin() {
  const net::RequestHead& head = exchange_.head();
  if (const auto encoding = head.headers.get("content-encoding"); encoding && *encoding != "identity") {
    respond_json(exchange_, 415,
                 oip::encode_error(fmt::format("content-encoding '{}' is not supported, only identity", *encoding)));
    return false;
  }
  if (auto status = body_.begin(head); !status) {
    send_error(status.error());
    return false;
  }
  return true;
}

void RestInferHandler::on_data(Bytes chunk) {
  if (failed_) return;
  if (auto status = body_.append(chunk); !status) {
    failed_ = true;
    send_error(status.error());
  }
}

Result<InferRequest> RestInferHandler::parse() {
  auto body = body_.finish();
  if (!body) return std::unexpected(std::move(body.error()));
  if (!body_.raw()) return oip::parse_infer_request(*body, state_.arena, state_.limits);
  auto model = state_.models.find(model_, version_);
  if (!model) return std::unexpected(std::move(model.error()));
  return oip::parse_raw_request(body->binary, (*model)->metadata(), state_.arena);
}

void RestInferHandler::on_end() {
  if (failed_) return;
  auto request = parse();
  if (!request) return send_error(request.error());
  asked_.id = request->id;
  asked_.outputs = request->outputs;
  asked_.binary_output_default = request->binary_output_default;
  start(std::move(*request), model_, version_, kNever);
}

void RestInferHandler::send_response(InferResponse response) {
  oip::EncodedJson encoded = oip::encode_infer_response(response, asked_);
  net::ResponseHead head;
  if (encoded.json_length) {
    head.headers.emplace_back("content-type", "application/octet-stream");
    head.headers.emplace_back("inference-header-content-length", std::to_string(*encoded.json_length));
  } else {
    head.headers.emplace_back("content-type", "application/json");
  }
  exchange_.respond(std::move(head), std::move(encoded.payload));
}

void RestInferHandler::send_error(const Error& error) {
  // A body over the limit is the client's to mend, unlike a full queue: 413, not 429.
  if (error.code == Code::kResourceExhausted && error.retry_after_s == 0) {
    return respond_json(exchange_, 413, oip::encode_error(error.message));
  }
  respond_error(exchange_, error);
}

}  // namespace sluice::api
