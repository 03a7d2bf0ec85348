#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "checkers.h"
#include "front.h"
#include "sim_model.h"
#include "tensors.h"

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Everything answers within this of virtual time once the faults have healed; no scenario has that much work.
constexpr Duration kPatience = seconds(60);
// For closes and resets to travel.
constexpr Duration kSettle = seconds(2);

std::int64_t no_wall_ms() { return 0; }

ModelConfig config_of(const ModelPlan& plan) {
  ModelConfig config;
  config.name = kModelName;
  config.backend = "simulated";
  config.max_batch_size = plan.max_batch_size;
  config.max_batch_size_given = true;
  config.instance_count = plan.instances;
  config.instances_given = true;
  config.run_inline = plan.runs_inline;
  const auto tensor = [](std::string name, Shape dims) {
    return ModelTensorConfig{.name = std::move(name), .datatype = DataType::kInt64, .dims = std::move(dims)};
  };
  config.inputs = {tensor("A", {-1}), tensor("B", {1})};
  config.outputs = {tensor("Y", {-1}), tensor("S", {1})};
  if (!plan.batching) return config;
  DynamicBatching& batching = config.dynamic_batching.emplace();
  batching.preferred_batch_size = plan.preferred;
  batching.max_queue_delay_us = std::chrono::duration_cast<std::chrono::microseconds>(plan.max_delay).count();
  batching.priority_levels = plan.priority_levels;
  batching.default_priority_level = plan.priority_levels;
  QueuePolicy& policy = batching.default_queue_policy;
  policy.default_timeout_us = std::chrono::duration_cast<std::chrono::microseconds>(plan.default_timeout).count();
  policy.allow_timeout_override = true;
  policy.max_queue_size = plan.max_queue_size;
  return config;
}

Arena::Options arena_options(std::string name) { return {.name = std::move(name), .max_bytes = std::size_t{1} << 30}; }

std::vector<io::Loop*> make_loops(io::SimWorld& world, std::string_view name, std::uint32_t count) {
  std::vector<io::Loop*> loops;
  for (std::uint32_t i = 0; i < count; ++i) loops.push_back(&world.make_loop(fmt::format("{} {}", name, i)));
  return loops;
}

class Simulation {
 public:
  Simulation(const Scenario& scenario, io::ComputePool& compute);
  RunReport run();

 private:
  void schedule(const std::vector<RequestPlan>& plans);
  void schedule_faults(Time until);
  void await_answers(std::string_view phase);
  void begin_drain();
  void close();

  const Scenario& scenario_;
  Arena server_arena_, client_arena_;
  io::SimWorld world_;
  Ledger ledger_;
  Log log_;
  std::shared_ptr<SimModel> engine_;
  Stage stage_;
  std::unique_ptr<RequestFront> front_;
  Time drain_began_{};
  bool drained_ = false;
};

Simulation::Simulation(const Scenario& scenario, io::ComputePool& compute)
    : scenario_(scenario),
      server_arena_(arena_options("server")),
      client_arena_(arena_options("client")),
      world_(scenario.seed, scenario.network),
      log_({.level = LogLevel::kOff}, no_wall_ms),
      engine_(std::make_shared<SimModel>(scenario_, SimModel::World{world_, ledger_, server_arena_})),
      stage_{scenario_,     world_,        ledger_, make_loops(world_, "server", scenario.server_loops),
             make_loops(world_, "client", scenario.clients), server_arena_, client_arena_, nullptr, log_, compute} {
  stage_.model = std::make_shared<serving::ServedModel>(config_of(scenario_.model), "1", engine_,
                                                        *stage_.server_loops.front());
  front_ = scenario_.front == Front::kDirect ? make_direct_front(stage_) : make_network_front(stage_);
}

void Simulation::schedule(const std::vector<RequestPlan>& plans) {
  for (const RequestPlan& plan : plans) {
    RequestRecord& record = ledger_.add(plan);
    const Time at = world_.now() + plan.at;
    world_.at(at, [this, &record] { front_->send(record); });
    if (!plan.cancel_after) continue;
    world_.at(at + *plan.cancel_after, [this, &record] {
      if (front_) front_->cancel(record);  // a run that hangs is closed before its time
    });
  }
}

void Simulation::schedule_faults(Time until) {
  for (const Duration at : scenario_.client_losses) {
    const auto client = static_cast<std::uint32_t>(at.count()) % scenario_.clients;
    world_.at(std::min(world_.now() + at, until), [this, client] { front_->lose_client(client); });
  }
  if (scenario_.drain_at) world_.at(world_.now() + *scenario_.drain_at, [this] { begin_drain(); });
  world_.at(until, [this] {
    engine_->heal();
    world_.network().reset_chance = 0;
  });
}

void Simulation::begin_drain() {
  drain_began_ = world_.now();
  front_->drain([this] {
    if (std::exchange(drained_, true)) ledger_.findings.add("drain", "it ends a second time");
    if (!stage_.model) return;  // a run that hung is closed by now
    serving::ModelQueue& queue = stage_.model->queue();
    if (queue.waiting() + queue.in_flight() == 0) return;
    ledger_.findings.add("drain", fmt::format("it ends while {} requests wait and {} run", queue.waiting(),
                                              queue.in_flight()));
  });
}

void Simulation::await_answers(std::string_view phase) {
  const bool answered = world_.run_until(
      [this] { return ledger_.open() == 0 && (drained_ || !scenario_.drain_at); }, kPatience);
  if (answered) return;
  ledger_.findings.add("liveness", fmt::format("{}: {} requests have no answer, {} wait in the queue, {} batches run, "
                                               "drained: {}", phase, ledger_.open(), stage_.model->queue().waiting(),
                                               engine_->in_flight(), drained_));
}

void Simulation::close() {
  front_->close();
  world_.run_for(kSettle);
  Leftovers leftovers;
  leftovers.waiting = stage_.model->queue().waiting();
  leftovers.in_flight = stage_.model->queue().in_flight();
  check_statistics(scenario_, ledger_, stage_.model->stats()->snapshot(), engine_->batches_done(),
                   engine_->rows_done());
  front_.reset();
  stage_.model.reset();
  world_.run_for(kSettle);
  leftovers.server_blocks = server_arena_.usage().blocks;
  leftovers.client_blocks = client_arena_.usage().blocks;
  leftovers.streams = world_.open_streams();
  check_leftovers(ledger_, leftovers);
}

RunReport Simulation::run() {
  const std::vector<RequestPlan> plans = draw_workload(scenario_);
  schedule(plans);
  schedule_faults(world_.now() + plans.back().at);
  await_answers("under load");
  if (ledger_.findings.empty()) {
    // What runs for clients that have gone ends, and the instances that died last are back.
    world_.run_until([this] { return engine_->in_flight() == 0; }, kPatience);
    world_.run_for(scenario_.engine.restart);
    schedule(draw_probes(scenario_, plans.size() + 1));
    await_answers("after the faults");
  }
  close();
  check_answers(ledger_);
  check_reasons(scenario_, ledger_, drain_began_);
  check_prompt_ends(scenario_, ledger_);

  RunReport report;
  report.findings = ledger_.findings.texts();
  report.finding_count = ledger_.findings.count();
  report.digest = world_.digest();
  for (const auto& [id, record] : ledger_.records()) {
    report.digest = report.digest * 31 + static_cast<std::uint64_t>(record.code);
    ++report.answers[static_cast<std::size_t>(record.code)];
  }
  report.events = world_.events_run();
  report.batches = engine_->batches_done();
  return report;
}

}  // namespace

std::string RunReport::answers_text() const {
  std::string text;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", code_name(static_cast<Code>(i)), answers[i]);
  }
  return text;
}

RunReport run_scenario(const Scenario& scenario, io::ComputePool& compute) {
  return Simulation(scenario, compute).run();
}

}  // namespace sluice::sim
