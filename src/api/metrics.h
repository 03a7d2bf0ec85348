// The Prometheus page of a replica: Triton's families (nv_*), so that its dashboards work, and Sluice's own
// (sluice_*): histograms of every stage that can be added up over replicas, batch sizes, why batches closed.
#pragma once

#include <string>

#include "api/oip_service.h"
#include "io/files.h"

namespace sluice::api {

struct ProcessSample {
  io::ProcessUsage usage;
  double cpu_share = 0;  // of all cores, since the scrape before
};

std::string render_metrics(const ServerState& state, const ProcessSample& process);

}  // namespace sluice::api
