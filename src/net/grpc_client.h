// gRPC unary calls over an HttpClient: framing, grpc-timeout, status from trailers.
#pragma once

#include <string>
#include <string_view>

#include "net/client.h"

namespace sluice::net {

// The message, unframed. An error carries the server's grpc-status and decoded grpc-message; an HTTP status
// without grpc-status is mapped as gRPC's http-grpc-status-mapping says.
using UnaryDone = Function<void(Result<std::string>)>;

// `framed` is a whole frame (prefix and message). `path` like "/inference.GRPCInferenceService/ModelInfer".
CallId grpc_unary(HttpClient& client, std::string_view path, Payload framed, Time now, Time deadline, UnaryDone done);

// Prefixes a small message.
Payload frame_message(std::string message);

// Headers of a gRPC request, for callers that bring a ResponseHandler of their own.
ClientRequest grpc_request(std::string_view path, Payload framed, Time now, Time deadline);
// The status of a finished gRPC call, from its head and trailers.
Status grpc_status(const ClientResponseHead& head, const Headers& trailers);

}  // namespace sluice::net
