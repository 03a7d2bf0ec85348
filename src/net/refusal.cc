#include "net/refusal.h"

#include <string>
#include <utility>

#include "base/json_writer.h"
#include "wire/grpc/framing.h"

namespace sluice::net {

Refusal make_refusal(const RequestHead& request, int status, const Error& error) {
  Refusal refusal;
  const auto type = request.headers.get("content-type");
  if (request.protocol == Protocol::kHttp2 && type && type->starts_with("application/grpc")) {
    refusal.head.headers.emplace_back("content-type", "application/grpc");
    refusal.trailers.emplace_back("grpc-status", std::to_string(static_cast<int>(error.code)));
    refusal.trailers.emplace_back("grpc-message", grpc_wire::encode_message(error.message));
    return refusal;
  }
  std::string text;
  JsonWriter(text).begin_object().key("error").string(error.message).end_object();
  refusal.head.status = status;
  refusal.head.headers.emplace_back("content-type", "application/json");
  refusal.body.emplace_back(std::move(text));
  return refusal;
}

}  // namespace sluice::net
