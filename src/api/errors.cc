#include "api/errors.h"

#include "wire/grpc/framing.h"
#include "wire/oip/json.h"

namespace sluice::api {

int http_status(Code code) {
  switch (code) {
    case Code::kOk: return 200;
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kFailedPrecondition: return 400;
    case Code::kUnauthenticated: return 401;
    case Code::kPermissionDenied: return 403;
    case Code::kNotFound: return 404;
    case Code::kAlreadyExists:
    case Code::kAborted: return 409;
    case Code::kResourceExhausted: return 429;
    case Code::kCancelled: return 499;
    case Code::kUnimplemented: return 501;
    case Code::kUnavailable: return 503;
    case Code::kDeadlineExceeded: return 504;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss: return 500;
  }
  return 500;
}

void respond_json(net::Exchange& exchange, int status, std::string body) {
  net::ResponseHead head;
  head.status = status;
  head.headers.emplace_back("content-type", "application/json");
  Payload payload;
  payload.emplace_back(std::move(body));
  exchange.respond(std::move(head), std::move(payload));
}

void respond_empty(net::Exchange& exchange, int status) {
  net::ResponseHead head;
  head.status = status;
  exchange.respond(std::move(head), {});
}

void respond_error(net::Exchange& exchange, const Error& error) {
  net::ResponseHead head;
  head.status = http_status(error.code);
  head.headers.emplace_back("content-type", "application/json");
  if (error.retry_after_s > 0) head.headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  Payload payload;
  payload.emplace_back(oip::encode_error(error.message));
  exchange.respond(std::move(head), std::move(payload));
}

void respond_method_not_allowed(net::Exchange& exchange, std::string_view allow) {
  net::ResponseHead head;
  head.status = 405;
  head.headers.emplace_back("content-type", "application/json");
  head.headers.emplace_back("allow", std::string(allow));
  std::string text = std::string(net::method_name(exchange.head().method)) + " is not allowed here, only " +
                     std::string(allow);
  Payload payload;
  payload.emplace_back(oip::encode_error(text));
  exchange.respond(std::move(head), std::move(payload));
}

namespace {

net::ResponseHead grpc_head() {
  net::ResponseHead head;
  head.headers.emplace_back("content-type", "application/grpc");
  return head;
}

}  // namespace

void respond_grpc(net::Exchange& exchange, Payload framed) {
  net::Trailers trailers;
  trailers.emplace_back("grpc-status", "0");
  exchange.respond(grpc_head(), std::move(framed), std::move(trailers));
}

void respond_grpc_message(net::Exchange& exchange, std::string message) {
  const auto prefix = grpc_wire::message_prefix(static_cast<std::uint32_t>(message.size()));
  message.insert(0, prefix.data(), prefix.size());
  Payload payload;
  payload.emplace_back(std::move(message));
  respond_grpc(exchange, std::move(payload));
}

void respond_grpc_error(net::Exchange& exchange, const Error& error) {
  net::Trailers trailers;
  trailers.emplace_back("grpc-status", std::to_string(static_cast<int>(error.code)));
  trailers.emplace_back("grpc-message", grpc_wire::encode_message(error.message));
  // gRPC's retry pushback, in milliseconds (gRFC A6).
  if (error.retry_after_s > 0) {
    trailers.emplace_back("grpc-retry-pushback-ms", std::to_string(std::uint64_t{error.retry_after_s} * 1000));
  }
  exchange.respond(grpc_head(), {}, std::move(trailers));
}

}  // namespace sluice::api
