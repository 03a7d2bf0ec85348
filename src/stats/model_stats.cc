#include "stats/model_stats.h"

#include <algorithm>
#include <optional>

namespace sluice {
namespace {

// 1 ns to 1 h, told apart to 1 %: 4608 counts a stage.
constexpr HdrConfig kStageRange{.lowest = 1, .highest = 3'600'000'000'000, .significant_digits = 2};

// What lies between two instants; nothing where one of them was not reached.
std::optional<Duration> between(Time from, Time to) {
  if (from == Time{} || to == Time{}) return std::nullopt;
  return std::max(to - from, Duration::zero());
}

DurationStat total_of(const HdrHistogram& values) {
  return {.count = static_cast<std::uint64_t>(values.count()), .ns = static_cast<std::uint64_t>(values.sum())};
}

}  // namespace

void ModelStats::AtomicDuration::add(Duration d, std::uint64_t n) {
  count.fetch_add(n, std::memory_order_relaxed);
  ns.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(to_ns(d), 0)), std::memory_order_relaxed);
}

DurationStat ModelStats::AtomicDuration::load() const {
  return {.count = count.load(std::memory_order_relaxed), .ns = ns.load(std::memory_order_relaxed)};
}

ModelStats::ModelStats(std::string name, std::string version) : name_(std::move(name)), version_(std::move(version)) {
  for (auto& stage : stages_) stage = std::make_unique<AtomicHdrHistogram>(kStageRange);
}

void ModelStats::record_success(const RequestTimes& times, std::int64_t wall_ms) {
  const auto stage = [this](Stage which, Time from, Time to) {
    if (const auto taken = between(from, to)) stages_[static_cast<std::size_t>(which)]->record(to_ns(*taken));
  };
  stage(Stage::kWireIn, times.received, times.queued);
  stage(Stage::kQueue, times.queued, times.taken);
  stage(Stage::kAssembly, times.taken, times.compute_start);
  stage(Stage::kCompute, times.compute_start, times.compute_end);
  stage(Stage::kWireOut, times.compute_end, times.encoded);
  stage(Stage::kTotal, times.received, times.encoded);
  last_inference_ms_.store(static_cast<std::uint64_t>(wall_ms), std::memory_order_relaxed);
}

void ModelStats::record_failure(FailureReason reason, Duration total) {
  fail_.add(total);
  failures_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
}

void ModelStats::record_batch(std::uint64_t rows, CloseReason reason, Duration input, Duration infer, Duration output) {
  inference_count_.fetch_add(rows, std::memory_order_relaxed);
  execution_count_.fetch_add(1, std::memory_order_relaxed);
  close_reasons_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  const auto add = [](DurationStat& stat, Duration d) {
    ++stat.count;
    stat.ns += static_cast<std::uint64_t>(std::max<std::int64_t>(to_ns(d), 0));
  };
  const std::lock_guard lock(batches_mutex_);
  BatchStat& batch = batches_[rows];  // as many entries as the model's max_batch_size allows
  batch.batch_size = rows;
  add(batch.compute_input, input);
  add(batch.compute_infer, infer);
  add(batch.compute_output, output);
}

void ModelStats::set_load(double seconds, std::uint64_t memory_bytes) {
  load_seconds_.store(seconds, std::memory_order_relaxed);
  memory_bytes_.store(memory_bytes, std::memory_order_relaxed);
}

ModelStatsSnapshot ModelStats::snapshot() const {
  ModelStatsSnapshot out{.name = name_, .version = version_};
  out.last_inference_ms = last_inference_ms_.load(std::memory_order_relaxed);
  out.inference_count = inference_count_.load(std::memory_order_relaxed);
  out.execution_count = execution_count_.load(std::memory_order_relaxed);
  out.fail = fail_.load();
  for (std::size_t i = 0; i < failures_.size(); ++i) out.failures[i] = failures_[i].load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < close_reasons_.size(); ++i) {
    out.close_reasons[i] = close_reasons_[i].load(std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    out.stages[i] = std::make_shared<const HdrHistogram>(stages_[i]->snapshot());
  }
  // Triton's sums are those of the stages: nothing is counted twice on the request path.
  out.success = total_of(*out.stages[static_cast<std::size_t>(Stage::kTotal)]);
  out.queue = total_of(*out.stages[static_cast<std::size_t>(Stage::kQueue)]);
  out.compute_input = total_of(*out.stages[static_cast<std::size_t>(Stage::kAssembly)]);
  out.compute_infer = total_of(*out.stages[static_cast<std::size_t>(Stage::kCompute)]);
  out.compute_output = total_of(*out.stages[static_cast<std::size_t>(Stage::kWireOut)]);
  {
    const std::lock_guard lock(batches_mutex_);
    out.batches = batches_;
  }
  out.pending = pending_.load(std::memory_order_relaxed);
  out.load_seconds = load_seconds_.load(std::memory_order_relaxed);
  out.memory_bytes = memory_bytes_.load(std::memory_order_relaxed);
  return out;
}

}  // namespace sluice
