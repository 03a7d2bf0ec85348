// What a load run has shown: a table, a text plot of the latencies' distribution, or JSON.
#pragma once

#include <string>

#include "cli/load_generator.h"
#include "stats/model_stats.h"

namespace sluice::cli {

// The server's own figures of the run: differences of two statistics, per request or batch.
struct ServerStages {
  double queue_us = 0, compute_input_us = 0, compute_infer_us = 0, compute_output_us = 0;  // mean
  double rows_per_batch = 0;
  std::uint64_t requests = 0, batches = 0;
};
ServerStages stages_between(const ModelStatsSnapshot& before, const ModelStatsSnapshot& after);

struct BenchReport {
  std::string model, protocol, load;  // "open loop, 200 requests/s", "closed loop, 8 at a time"
  LoadResult result;
  ServerStages stages;
};

std::string format_report(const BenchReport& report);
std::string format_report_json(const BenchReport& report);
// At most `rows` lines "from ms | ####  count", buckets even on a log scale; "" when nothing was recorded.
std::string plot_latencies(const HdrHistogram& latency_ns, int rows, int width);

}  // namespace sluice::cli
