#include "api/metrics.h"

#include <array>
#include <functional>
#include <vector>

#include "api/answers.h"
#include "api/errors.h"
#include "io/compute.h"
#include "stats/prometheus.h"

namespace sluice::api {
namespace {

constexpr std::array kSecondsBounds = {10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
                                       10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1.0,  2.5,    5.0, 10.0};
constexpr std::array kFirstResponseBoundsMs = {100.0, 500.0, 2000.0, 5000.0};
constexpr std::array kBatchBounds = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0};

using Models = std::vector<ModelStatsSnapshot>;

template <class Read>
void per_model(PrometheusWriter& out, const Models& models, std::string_view name, MetricType type,
               std::string_view help, Read read) {
  out.family(name, type, help);
  for (const auto& model : models) out.sample({{"model", model.name}, {"version", model.version}}, read(model));
}

void write_triton_counts(PrometheusWriter& out, const Models& models) {
  using S = ModelStatsSnapshot;
  per_model(out, models, "nv_inference_request_success", MetricType::kCounter, "Successful inference requests",
            [](const S& m) { return m.success.count; });
  out.family("nv_inference_request_failure", MetricType::kCounter, "Failed inference requests, by reason");
  for (const auto& model : models) {
    for (std::size_t i = 0; i < kFailureReasonNames.size(); ++i) {
      out.sample({{"model", model.name}, {"reason", kFailureReasonNames[i]}, {"version", model.version}},
                 model.failures[i]);
    }
  }
  per_model(out, models, "nv_inference_count", MetricType::kCounter, "Inferences performed (rows of all batches)",
            [](const S& m) { return m.inference_count; });
  per_model(out, models, "nv_inference_exec_count", MetricType::kCounter, "Model executions (batches)",
            [](const S& m) { return m.execution_count; });
  per_model(out, models, "nv_inference_pending_request_count", MetricType::kGauge, "Requests waiting for execution",
            [](const S& m) { return static_cast<double>(m.pending); });
  per_model(out, models, "nv_model_load_duration_secs", MetricType::kGauge, "Time that loading took",
            [](const S& m) { return m.load_seconds; });
}

void write_triton_durations(PrometheusWriter& out, const Models& models) {
  struct Family {
    std::string_view name, help;
    DurationStat ModelStatsSnapshot::*success;
  };
  constexpr std::array kFamilies = {
      Family{"nv_inference_request_duration_us", "Cumulative time of requests, end to end",
             &ModelStatsSnapshot::success},
      Family{"nv_inference_queue_duration_us", "Cumulative time in the queue", &ModelStatsSnapshot::queue},
      Family{"nv_inference_compute_input_duration_us", "Cumulative time of assembling inputs",
             &ModelStatsSnapshot::compute_input},
      Family{"nv_inference_compute_infer_duration_us", "Cumulative time of running the model",
             &ModelStatsSnapshot::compute_infer},
      Family{"nv_inference_compute_output_duration_us", "Cumulative time of splitting outputs",
             &ModelStatsSnapshot::compute_output},
  };
  for (const Family& family : kFamilies) {
    per_model(out, models, family.name, MetricType::kCounter, family.help,
              [&](const ModelStatsSnapshot& m) { return (m.*family.success).ns / 1000; });
  }
  out.family("nv_inference_first_response_histogram_ms", MetricType::kHistogram, "Time to the first response");
  for (const auto& model : models) {
    const auto& total = model.stages[static_cast<std::size_t>(Stage::kTotal)];
    if (total) out.histogram({{"model", model.name}, {"version", model.version}}, *total, 1e6, kFirstResponseBoundsMs);
  }
}

void write_stages(PrometheusWriter& out, const Models& models) {
  out.family("sluice_stage_seconds", MetricType::kHistogram,
             "Time of requests in each stage: wire_in, queue, assembly, compute, wire_out, total");
  for (const auto& model : models) {
    for (std::size_t i = 0; i < kStageNames.size(); ++i) {
      if (!model.stages[i]) continue;
      out.histogram({{"model", model.name}, {"version", model.version}, {"stage", kStageNames[i]}}, *model.stages[i],
                    1e9, kSecondsBounds);
    }
  }
}

void write_batches(PrometheusWriter& out, const Models& models) {
  out.family("sluice_batch_rows", MetricType::kHistogram, "Rows of the batches that ran");
  for (const auto& model : models) {
    HdrHistogram rows({.lowest = 1, .highest = 65536, .significant_digits = 3});
    for (const auto& [size, batch] : model.batches) {
      rows.record(static_cast<std::int64_t>(size), static_cast<std::int64_t>(batch.compute_infer.count));
    }
    out.histogram({{"model", model.name}, {"version", model.version}}, rows, 1.0, kBatchBounds);
  }
  out.family("sluice_batches_closed_total", MetricType::kCounter, "Batches by the reason that closed them");
  for (const auto& model : models) {
    for (std::size_t i = 0; i < kCloseReasonNames.size(); ++i) {
      out.sample({{"model", model.name}, {"version", model.version}, {"reason", kCloseReasonNames[i]}},
                 model.close_reasons[i]);
    }
  }
  per_model(out, models, "sluice_model_memory_bytes", MetricType::kGauge, "Memory of a loaded model",
            [](const ModelStatsSnapshot& m) { return m.memory_bytes; });
}

void write_process(PrometheusWriter& out, const ServerState& state, const ProcessSample& process) {
  out.family("nv_cpu_utilization", MetricType::kGauge, "Share of all cores in use by this process [0.0 - 1.0]");
  out.sample({}, process.cpu_share);
  out.family("nv_cpu_memory_used_bytes", MetricType::kGauge, "Resident memory of this process");
  out.sample({}, process.usage.resident_bytes);
  out.family("nv_cpu_memory_total_bytes", MetricType::kGauge, "Memory of the machine or the cgroup");
  out.sample({}, io::total_memory_bytes());
  out.family("process_cpu_seconds_total", MetricType::kCounter, "User and system time");
  out.sample({}, process.usage.cpu_seconds);
  const Arena::Usage arena = state.arena.usage();
  out.family("sluice_arena_bytes", MetricType::kGauge, "Tensor memory, by state");
  out.sample({{"state", "in_use"}}, std::uint64_t{arena.in_use_bytes});
  out.sample({{"state", "idle"}}, std::uint64_t{arena.idle_bytes});
  out.family("sluice_ready", MetricType::kGauge, "1 when the server is ready");
  out.sample({}, std::uint64_t{is_ready(state) ? 1U : 0U});
}

class MetricsService final : public net::Service {
 public:
  explicit MetricsService(ServerState& state) : state_(state) {}

  std::unique_ptr<net::RequestHandler> open(net::Exchange& exchange) override {
    const auto method = exchange.head().method;
    if (exchange.head().path() != "/metrics") {
      respond_error(exchange, {Code::kNotFound, "only /metrics is here"});
    } else if (method != net::Method::kGet && method != net::Method::kHead) {
      respond_method_not_allowed(exchange, "GET");
    } else {
      net::ResponseHead head;
      head.headers.emplace_back("content-type", std::string(kPrometheusContentType));
      Payload payload;
      payload.emplace_back(render_metrics(state_, sample(exchange.loop().now())));
      exchange.respond(std::move(head), std::move(payload));
    }
    return nullptr;
  }

 private:
  ProcessSample sample(Time now) {
    ProcessSample sample{.usage = io::process_usage()};
    const double seconds = to_seconds(now - last_time_);
    if (last_time_ != Time{} && seconds > 0) {
      sample.cpu_share = (sample.usage.cpu_seconds - last_cpu_) / (seconds * io::core_budget());
    }
    last_time_ = now;
    last_cpu_ = sample.usage.cpu_seconds;
    return sample;
  }

  ServerState& state_;
  Time last_time_{};
  double last_cpu_ = 0;
};

}  // namespace

std::string render_metrics(const ServerState& state, const ProcessSample& process) {
  Models models;
  for (const auto& model : state.models.ready_models()) models.push_back(model->stats()->snapshot());
  std::string text;
  PrometheusWriter out(text);
  write_triton_counts(out, models);
  write_triton_durations(out, models);
  write_stages(out, models);
  write_batches(out, models);
  write_process(out, state, process);
  return text;
}

std::unique_ptr<net::Service> make_metrics_service(ServerState& state) {
  return std::make_unique<MetricsService>(state);
}

}  // namespace sluice::api
