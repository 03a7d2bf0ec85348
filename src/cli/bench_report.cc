#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/json_writer.h"

namespace sluice::cli {
namespace {

constexpr std::array kPercentiles = {50.0, 90.0, 95.0, 99.0, 99.9};

double mean_us(const DurationStat& before, const DurationStat& after, std::uint64_t per) {
  return per == 0 ? 0 : static_cast<double>(after.ns - before.ns) / 1000.0 / static_cast<double>(per);
}

double throughput(const LoadResult& result) {
  const double seconds = to_seconds(result.measured);
  return seconds > 0 ? static_cast<double>(result.completed) / seconds : 0;
}

double to_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

ServerStages stages_between(const ModelStatsSnapshot& before, const ModelStatsSnapshot& after) {
  ServerStages stages;
  stages.requests = after.success.count - before.success.count;
  stages.batches = after.execution_count - before.execution_count;
  stages.queue_us = mean_us(before.queue, after.queue, stages.requests);
  stages.compute_input_us = mean_us(before.compute_input, after.compute_input, stages.requests);
  stages.compute_infer_us = mean_us(before.compute_infer, after.compute_infer, stages.requests);
  stages.compute_output_us = mean_us(before.compute_output, after.compute_output, stages.requests);
  if (stages.batches > 0) {
    stages.rows_per_batch =
        static_cast<double>(after.inference_count - before.inference_count) / static_cast<double>(stages.batches);
  }
  return stages;
}

std::string plot_latencies(const HdrHistogram& latency_ns, int rows, int width) {
  if (latency_ns.count() == 0) return "";
  const double low = std::log(static_cast<double>(std::max<std::int64_t>(1, latency_ns.min())));
  const double high = std::log(static_cast<double>(std::max<std::int64_t>(2, latency_ns.max()))) + 1e-9;
  std::vector<std::int64_t> counts;
  std::vector<double> edges;
  std::int64_t below = 0;
  for (int i = 1; i <= rows; ++i) {
    const double edge = std::exp(low + (high - low) * i / rows);
    const std::int64_t upto =
        i == rows ? latency_ns.count() : latency_ns.count_at_or_below(static_cast<std::int64_t>(edge));
    counts.push_back(upto - below);
    edges.push_back(edge);
    below = upto;
  }
  const std::int64_t most = std::max<std::int64_t>(1, *std::ranges::max_element(counts));
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto bar =
        static_cast<std::size_t>(std::llround(static_cast<double>(counts[i]) * width / static_cast<double>(most)));
    out += fmt::format("  <= {:>10.3f} ms |{:<{}}| {}\n", edges[i] / 1e6, std::string(bar, '#'), width, counts[i]);
  }
  return out;
}

std::string format_report(const BenchReport& report) {
  const LoadResult& result = report.result;
  std::string out = fmt::format("{} over {}: {}\n", report.model, report.protocol, report.load);
  out += fmt::format("  {} answered, {} failed, {} dropped in {:.2f} s: {:.1f} requests/s\n", result.completed,
                     result.failed, result.dropped, to_seconds(result.measured), throughput(result));
  for (const auto& [text, count] : result.errors) out += fmt::format("  {} x {}\n", count, text);
  if (result.completed == 0) return out;
  out += "  latency from the intended start, ms:";
  for (const double p : kPercentiles) out += fmt::format("  p{:g} {:.3f}", p, to_ms(result.latency_ns.percentile(p)));
  out += fmt::format("  max {:.3f}\n", to_ms(result.latency_ns.max()));
  const ServerStages& stages = report.stages;
  out += fmt::format(
      "  in the server, mean us: queue {:.1f}  input {:.1f}  infer {:.1f}  output {:.1f}; {:.2f} rows a batch\n",
      stages.queue_us, stages.compute_input_us, stages.compute_infer_us, stages.compute_output_us,
      stages.rows_per_batch);
  return out + plot_latencies(result.latency_ns, 16, 50);
}

std::string format_report_json(const BenchReport& report) {
  const LoadResult& result = report.result;
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("model").string(report.model).key("protocol").string(report.protocol);
  json.key("load").string(report.load);
  json.key("completed").unsigned_integer(result.completed).key("failed").unsigned_integer(result.failed);
  json.key("dropped").unsigned_integer(result.dropped).key("seconds").number(to_seconds(result.measured));
  json.key("requests_per_second").number(throughput(result));
  json.key("latency_ms").begin_object();
  for (const double p : kPercentiles) json.key(fmt::format("p{:g}", p)).number(to_ms(result.latency_ns.percentile(p)));
  json.key("max")
      .number(to_ms(result.latency_ns.max()))
      .key("mean")
      .number(result.latency_ns.mean() / 1e6)
      .end_object();
  json.key("server").begin_object().key("queue_us").number(report.stages.queue_us);
  json.key("compute_input_us").number(report.stages.compute_input_us);
  json.key("compute_infer_us").number(report.stages.compute_infer_us);
  json.key("compute_output_us").number(report.stages.compute_output_us);
  json.key("rows_per_batch").number(report.stages.rows_per_batch).end_object();
  json.key("errors").begin_object();
  for (const auto& [text, count] : result.errors) json.key(text).unsigned_integer(count);
  json.end_object().end_object();
  return out;
}

}  // namespace sluice::cli
