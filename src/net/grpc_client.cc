#include "net/grpc_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "wire/grpc/framing.h"

namespace sluice::net {
namespace {

// doc/http-grpc-status-mapping.md
Code code_of_http_status(int status) {
  switch (status) {
    case 400: return Code::kInternal;
    case 401: return Code::kUnauthenticated;
    case 403: return Code::kPermissionDenied;
    case 404: return Code::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504: return Code::kUnavailable;
    default: return Code::kUnknown;
  }
}

std::optional<std::string_view> field(const ClientResponseHead& head, const Headers& trailers, std::string_view name) {
  const auto value = trailers.get(name);
  return value ? value : head.headers.get(name);  // in the head: a trailers-only response
}

// The one message of a unary response, without its frame.
Result<std::string> unframe(std::string body) {
  constexpr std::size_t kPrefix = grpc_wire::kPrefixBytes;
  if (body.size() < kPrefix) return fail(Code::kInternal, "the gRPC response has no message");
  if (body[0] != 0) return fail(Code::kUnimplemented, "the gRPC response is compressed, which was not asked for");
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kPrefix; ++i) length = length << 8 | static_cast<unsigned char>(body[i]);
  if (body.size() - kPrefix != length) {
    return fail(Code::kInternal, fmt::format("the gRPC response has {} bytes after a prefix that says {}",
                                             body.size() - kPrefix, length));
  }
  body.erase(0, kPrefix);
  return body;
}

}  // namespace

ClientRequest grpc_request(std::string_view path, Payload framed, Time now, Time deadline) {
  ClientRequest request;
  request.method = Method::kPost;
  request.target = path;
  request.headers = {{"content-type", "application/grpc"}, {"te", "trailers"}};
  if (deadline != kNever) {
    const Duration left = std::max<Duration>(deadline - now, std::chrono::nanoseconds(1));
    request.headers.emplace_back("grpc-timeout", grpc_wire::format_timeout(left));
  }
  request.body = std::move(framed);
  request.deadline = deadline;
  return request;
}

Status grpc_status(const ClientResponseHead& head, const Headers& trailers) {
  const auto text = field(head, trailers, "grpc-status");
  if (!text) {
    if (head.status == 200) return fail(Code::kUnknown, "the response has no grpc-status");
    return fail(code_of_http_status(head.status), fmt::format("HTTP status {} without grpc-status", head.status));
  }
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < 0 || number > 16) {
    return fail(Code::kUnknown, fmt::format("grpc-status '{}' is not a number from 0 to 16", *text));
  }
  if (number == 0) return {};
  const auto message = field(head, trailers, "grpc-message");
  return fail(static_cast<Code>(number), message ? grpc_wire::decode_message(*message) : std::string());
}

Payload frame_message(std::string message) {
  const auto prefix = grpc_wire::message_prefix(static_cast<std::uint32_t>(message.size()));
  message.insert(0, prefix.data(), prefix.size());
  Payload payload;
  payload.emplace_back(std::move(message));
  return payload;
}

CallId grpc_unary(HttpClient& client, std::string_view path, Payload framed, Time now, Time deadline, UnaryDone done) {
  return client.send(grpc_request(path, std::move(framed), now, deadline),
                     [done = std::move(done)](Result<ClientResponse> response) mutable {
                       if (!response) return done(fail(std::move(response.error())));
                       const ClientResponseHead head{response->status, std::move(response->headers)};
                       const Status status = grpc_status(head, response->trailers);
                       if (!status) return done(fail(status.error()));
                       done(unframe(std::move(response->body)));
                     });
}

}  // namespace sluice::net
