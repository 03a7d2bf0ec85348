#include "sim_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensors.h"

namespace sluice::sim {
namespace {

constexpr std::uint64_t kEngineStream = 0xe791e;
// How long a request may wait beside a free instance beyond the queue delay: posts and timers take moments.
constexpr Duration kWaitSlack = std::chrono::microseconds(20);

TensorMetadata tensor_of(std::string name, Shape dims, bool batched) {
  if (batched) dims.insert(dims.begin(), -1);
  return {.name = std::move(name), .datatype = DataType::kInt64, .shape = std::move(dims)};
}

const std::int64_t* values_of(const Tensor& tensor) {
  return reinterpret_cast<const std::int64_t*>(tensor.data.data());
}

}  // namespace

struct SimModel::Job {
  engine::Batch batch;
  engine::BatchDone done;
  std::vector<std::uint64_t> requests;
  std::size_t instance = 0;
  Time start;
  bool dies = false;
};

SimModel::SimModel(const Scenario& scenario, World world)
    : scenario_(scenario),
      world_(world.world),
      ledger_(world.ledger),
      arena_(world.arena),
      random_(scenario.seed ^ kEngineStream),
      workers_(world.world.make_executor([] { return Duration{0}; })),
      instance_back_at_(scenario.model.instances),
      instance_busy_(scenario.model.instances) {
  const bool batched = scenario.model.max_batch_size > 0;
  signature_.inputs = {tensor_of("A", {-1}, batched), tensor_of("B", {1}, batched)};
  signature_.outputs = {tensor_of("Y", {-1}, batched), tensor_of("S", {1}, batched)};
}

void SimModel::submit(engine::Batch batch, engine::BatchDone done) {
  check_bounds(batch);
  Job job;
  job.requests = check_items(batch);
  job.batch = std::move(batch);
  job.done = std::move(done);
  job.start = world_.now();
  if (runs_inline()) return run_inline(std::move(job));

  if (++in_flight_ > scenario_.model.instances) {
    report(fmt::format("{} batches in flight on {} instances", in_flight_, scenario_.model.instances));
    return job.done(fail(Code::kInternal, "no instance is free"));
  }
  if (in_flight_ == scenario_.model.instances) free_since_ = kNever;
  job.instance = static_cast<std::size_t>(std::ranges::find(instance_busy_, false) - instance_busy_.begin());
  instance_busy_[job.instance] = true;
  const Cost cost = draw_cost(job.batch.rows);
  job.dies = cost.dies;
  const Time end = std::max(world_.now(), instance_back_at_[job.instance]) + cost.length;
  if (cost.dies) instance_back_at_[job.instance] = end + scenario_.engine.restart;
  world_.at(end, [this, job = std::make_unique<Job>(std::move(job))]() mutable {
    workers_->submit([this, job = std::move(job)] { finish(*job); });
  });
}

void SimModel::check_bounds(const engine::Batch& batch) {
  if (batch.items.empty()) report("a batch without requests");
  std::int64_t rows = 0;
  for (const engine::BatchItem& item : batch.items) rows += item.rows;
  const std::int64_t most = std::max(scenario_.model.max_batch_size, 1);
  if (rows != batch.rows || rows > most) {
    report(fmt::format("a batch of {} rows, its requests have {}, the limit is {}", batch.rows, rows, most));
  }
  if (!scenario_.model.batching && batch.items.size() > 1) {
    report(fmt::format("{} requests in a batch of a model without batching", batch.items.size()));
  }
}

std::vector<std::uint64_t> SimModel::check_items(const engine::Batch& batch) {
  std::vector<std::uint64_t> requests;
  for (const engine::BatchItem& item : batch.items) {
    if (item.inputs.size() != 2 || item.inputs[1].data.size() < sizeof(std::int64_t)) {
      report(fmt::format("{} inputs for a request, expected A and B", item.inputs.size()));
      continue;
    }
    const Tensor& first = batch.items.front().inputs[0];
    const Tensor& a = item.inputs[0];
    if (scenario_.model.max_batch_size > 0 && (a.shape.size() != 2 || a.shape.back() != first.shape.back())) {
      report(fmt::format("shapes {} and {} in one batch", shape_to_string(first.shape), shape_to_string(a.shape)));
    }
    const std::uint64_t id = request_of(*values_of(item.inputs[1]));
    RequestRecord* record = ledger_.find(id);
    if (!record) {
      report(fmt::format("a request {} that nobody sent", id));
      continue;
    }
    check_request(*record, item);
    requests.push_back(id);
  }
  return requests;
}

void SimModel::check_request(RequestRecord& record, const engine::BatchItem& item) {
  const std::uint64_t id = record.plan.id;
  if (item.rows != record.plan.rows) report(fmt::format("request {} runs with {} rows", id, item.rows));
  if (const auto wrong = wrong_input(record.plan, item.inputs[0], item.inputs[1])) {
    report(fmt::format("request {}: {}", id, *wrong));
  }
  if (++record.runs > 1) report(fmt::format("request {} runs a second time", id));
  if (record.queue_deadline <= world_.now()) {
    report(fmt::format("request {} runs {} us after its deadline in the queue", id,
                       to_ns(world_.now() - record.queue_deadline) / 1000));
  }
  // A batch for an inline model is taken first and then posted to its loop: it may lose its client on the way.
  if (record.aborted != Time{} && !runs_inline()) {
    report(fmt::format("request {} runs after its client had gone", id));
  }
  if (scenario_.front == Front::kDirect && record.answers > 0) {
    report(fmt::format("request {} runs after its answer, {}", id, code_name(record.code)));
  }
  check_wait(record);
  record.run = Run::kRunning;
  record.started = world_.now();
}

void SimModel::check_wait(const RequestRecord& record) {
  if (scenario_.front != Front::kDirect || runs_inline() || free_since_ == kNever) return;
  const Duration waited = world_.now() - std::max(record.accepted, free_since_);
  if (waited <= scenario_.model.max_delay + kWaitSlack) return;
  report(fmt::format("request {} waited {} us beside a free instance, the delay is {} us", record.plan.id,
                     to_ns(waited) / 1000, to_ns(scenario_.model.max_delay) / 1000));
}

SimModel::Cost SimModel::draw_cost(std::int64_t rows) {
  const EnginePlan& engine = scenario_.engine;
  const double noise = 0.7 + 0.6 * random_.unit();
  const auto mean = static_cast<double>((engine.batch_cost + engine.row_cost * rows).count());
  auto length = Duration(static_cast<std::int64_t>(mean * noise));
  const bool slow = random_.chance(engine.slow_chance);
  const bool dies = random_.chance(engine.death_chance);
  if (healthy_) return {length, false};
  if (slow) length *= engine.slow_factor;
  if (dies) length = Duration(random_.between(0, length.count()));
  return {length, dies};
}

void SimModel::run_inline(Job job) {
  auto output = compute(job);
  ++batches_done_;
  rows_done_ += static_cast<std::uint64_t>(job.batch.rows);
  for (const std::uint64_t id : job.requests) ledger_[id].run = Run::kSucceeded;
  job.batch = {};
  job.done(std::move(output));
}

void SimModel::finish(Job& job) {
  instance_busy_[job.instance] = false;
  if (in_flight_-- == scenario_.model.instances) free_since_ = world_.now();
  for (const std::uint64_t id : job.requests) ledger_[id].run = job.dies ? Run::kFailed : Run::kSucceeded;
  if (job.dies) return job.done(fail(Code::kInternal, "the instance died"));
  auto output = compute(job);
  ++batches_done_;
  rows_done_ += static_cast<std::uint64_t>(job.batch.rows);
  job.batch = {};
  job.done(std::move(output));
}

Result<engine::BatchOutput> SimModel::compute(const Job& job) {
  const engine::Batch& batch = job.batch;
  const std::int64_t width = batch.items.front().inputs[0].shape.back();
  const auto make = [&](std::int64_t columns) -> Tensor {
    auto buffer = arena_.allocate(static_cast<std::size_t>(batch.rows * columns) * sizeof(std::int64_t));
    SLUICE_CHECK(buffer.has_value(), "the server's arena is large enough");
    const bool batched = scenario_.model.max_batch_size > 0;
    return Tensor{DataType::kInt64, batched ? Shape{batch.rows, columns} : Shape{columns}, buffer->bytes(), *buffer};
  };
  Tensor y = make(width), s = make(1);
  auto* y_at = reinterpret_cast<std::int64_t*>(y.owner.data());
  auto* s_at = reinterpret_cast<std::int64_t*>(s.owner.data());
  for (const engine::BatchItem& item : batch.items) {
    // What check_items found wrong must not be read as if it were right.
    if (item.inputs[0].data.size() != static_cast<std::size_t>(item.rows * width) * sizeof(std::int64_t)) continue;
    for (std::int64_t row = 0; row < item.rows; ++row, y_at += width, ++s_at) {
      compute_row(values_of(item.inputs[0]) + row * width, width, values_of(item.inputs[1])[row], y_at, s_at);
    }
  }
  engine::BatchOutput output;
  output.outputs.push_back(std::move(y));
  output.outputs.push_back(std::move(s));
  const auto wanted = [&](std::size_t i) { return batch.wanted.empty() || batch.wanted[i]; };
  for (std::size_t i = 0; i < output.outputs.size(); ++i) {
    if (!wanted(i)) output.outputs[i] = Tensor{};
  }
  output.compute_start = job.start;
  output.compute_end = world_.now();
  return output;
}

}  // namespace sluice::sim
