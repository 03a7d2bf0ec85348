// Error -> answer, once for each protocol. REST: a status and {"error":"..."}; gRPC: trailers with grpc-status
// and grpc-message. Both say when to retry, where the error knows it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "net/server.h"

namespace sluice::api {

// INVALID_ARGUMENT 400, NOT_FOUND 404, RESOURCE_EXHAUSTED 429, UNAVAILABLE 503, UNIMPLEMENTED 501, ...
int http_status(Code code);

void respond_json(net::Exchange& exchange, int status, std::string body);
void respond_empty(net::Exchange& exchange, int status);
void respond_error(net::Exchange& exchange, const Error& error);
void respond_method_not_allowed(net::Exchange& exchange, std::string_view allow);

// `framed` is one framed message.
void respond_grpc(net::Exchange& exchange, Payload framed);
void respond_grpc_message(net::Exchange& exchange, std::string message);  // frames it
void respond_grpc_error(net::Exchange& exchange, const Error& error);

}  // namespace sluice::api
