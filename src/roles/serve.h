// The replica: loads the models of a repository and answers for them until it is told to stop.
//
//   bind ports -> print "listening ..." -> load models -> ready
//   SIGTERM/SIGINT: readiness fails -> grace -> GOAWAY, drain -> unload -> exit 0;  a second signal exits at once
#pragma once

#include <cstdint>
#include <string>

#include "io/loop.h"
#include "net/server.h"
#include "stats/log.h"

namespace sluice::roles {

struct ServeOptions {
  std::string source;  // a repository folder, or one model file
  io::Endpoint http{"127.0.0.1", 8000};     // HTTP/1.1, HTTP/2 and gRPC by prior knowledge
  io::Endpoint grpc{"127.0.0.1", 8001};
  io::Endpoint metrics{"127.0.0.1", 8002};
  std::uint32_t exit_timeout_s = 30;  // for the drain; then what is open is cut and the exit code is 1
  std::uint32_t exit_grace_s = 1;     // after SIGTERM, before the drain: balancers see readiness fail first
  int loops = 0;                      // 0 = one per four cores
  int compute_threads = 0;            // 0 = the cgroup's cores
  bool strict_readiness = true;       // ready only when every model is
  net::ServerLimits limits;
  std::size_t max_arena_bytes = std::size_t{4} << 30;
  std::string onnxruntime_library;    // "" = where the build and the system keep it
  Log::Options log;
  std::string version;                // of this binary
};

// Blocks until stopped; the process's exit code. Errors are printed on standard error.
int serve(const ServeOptions& options);

}  // namespace sluice::roles
