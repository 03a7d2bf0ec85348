// The Open Inference Protocol as a net::Service: REST and gRPC (by content-type) on one port, over a
// ModelRegistry. Also grpc.health.v1 and the health routes. Made once per loop.
//
//   Exchange -> route -> parse (wire) -> ServedModel::prepare -> ModelQueue::submit -> sink -> encode -> respond
#pragma once

#include <atomic>
#include <memory>

#include "net/server.h"
#include "serving/model_registry.h"
#include "stats/log.h"
#include "wire/grpc/infer_reader.h"

namespace sluice::api {

// Shared by the services of all loops; outlives them.
struct ServerState {
  serving::ModelRegistry& models;
  Arena& arena;
  ServerMetadata metadata;
  RequestLimits limits;
  std::size_t max_body_bytes = std::size_t{1} << 30;
  const Log& log;
  std::atomic<bool> draining{false};  // readiness is false from then on; serving goes on
  bool strict_readiness = true;       // ready only when every model is
};

std::unique_ptr<net::Service> make_oip_service(ServerState& state);

// /metrics (Prometheus), and /health for probes.
std::unique_ptr<net::Service> make_metrics_service(ServerState& state);

}  // namespace sluice::api
