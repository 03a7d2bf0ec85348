// gRPC: inference.GRPCInferenceService and grpc.health.v1.Health, unary.
#pragma once

#include <memory>

#include "api/oip_service.h"

namespace sluice::api {

// `exchange` carries content-type application/grpc. Returns its handler, or nullptr when it has answered.
std::unique_ptr<net::RequestHandler> open_grpc(ServerState& state, net::Exchange& exchange);

}  // namespace sluice::api
