#include "scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/random.h"

namespace sluice::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kScenarioStream = 0x5ce7a610;
constexpr std::uint64_t kWorkloadStream = 0x3072c10ad;
constexpr std::uint64_t kProbeStream = 0x9a0be5;
constexpr std::uint32_t kProbes = 5;
// Longer than any delay and batch: probes do not meet.
constexpr Duration kProbeGap = milliseconds(20);

template <class T>
T pick(Random& random, const std::vector<T>& from) {
  return from[random.below(from.size())];
}

// Between low and high, each order of magnitude as likely as another.
Duration log_uniform(Random& random, Duration low, Duration high) {
  Duration value = low;
  while (value < high && random.chance(0.7)) value *= 2;
  return std::min(high, Duration(random.between(low.count(), std::max(low, value).count())));
}

ModelPlan draw_model(Random& random) {
  ModelPlan model;
  model.max_batch_size = pick<std::int32_t>(random, {0, 1, 2, 4, 8, 8, 16, 32});
  model.batching = model.max_batch_size > 0 && random.chance(0.9);
  for (std::int32_t size = 2; size <= model.max_batch_size; size *= 2) {
    if (random.chance(0.2)) model.preferred.push_back(size);
  }
  if (random.chance(0.5)) model.max_delay = log_uniform(random, microseconds(50), milliseconds(5));
  model.instances = static_cast<std::uint32_t>(random.between(1, 4));
  model.max_queue_size = random.chance(0.3) ? static_cast<std::uint32_t>(random.between(1, 24)) : 4096;
  if (model.batching && random.chance(0.3)) model.priority_levels = static_cast<std::uint32_t>(random.between(2, 3));
  if (model.batching && random.chance(0.15)) {
    // Less than the delay would let nothing through.
    model.default_timeout = model.max_delay + log_uniform(random, milliseconds(1), milliseconds(50));
  }
  model.runs_inline = random.chance(0.08);
  return model;
}

EnginePlan draw_engine(Random& random) {
  EnginePlan engine;
  engine.batch_cost = log_uniform(random, microseconds(20), milliseconds(4));
  engine.row_cost = log_uniform(random, microseconds(1), microseconds(500));
  if (random.chance(0.5)) {
    engine.slow_chance = 0.05;
    engine.slow_factor = static_cast<int>(random.between(5, 40));
  }
  if (random.chance(0.4)) {
    engine.death_chance = 0.04;
    engine.restart = log_uniform(random, milliseconds(1), milliseconds(50));
  }
  return engine;
}

io::SimNetworkOptions draw_network(Random& random) {
  io::SimNetworkOptions network;
  network.min_latency = log_uniform(random, microseconds(5), milliseconds(1));
  network.max_latency = network.min_latency + log_uniform(random, microseconds(5), milliseconds(5));
  network.max_piece_bytes = pick<std::size_t>(random, {64, 1500, 16384, 65536});
  network.window_bytes = pick<std::size_t>(random, {700, 4096, 65536, 262144});
  if (random.chance(0.2)) network.reset_chance = 0.002;
  return network;
}

// When each request is sent: bursts, or a Poisson process, at a rate from idle to overload.
std::vector<Duration> draw_arrivals(Random& random, std::uint32_t count) {
  const Duration mean = log_uniform(random, microseconds(5), milliseconds(2));
  const bool bursts = random.chance(0.4);
  const std::uint64_t burst = bursts ? random.between(2, 40) : 1;
  std::vector<Duration> arrivals;
  Duration at{0};
  while (arrivals.size() < count) {
    at += Duration(static_cast<std::int64_t>(random.exponential(static_cast<double>(mean.count()) * burst)));
    for (std::uint64_t i = 0; i < burst && arrivals.size() < count; ++i) arrivals.push_back(at);
  }
  return arrivals;
}

Protocol draw_protocol(Random& random, double rest_share) {
  const double draw = random.unit();
  if (draw < 0.04) return Protocol::kSlowReader;
  if (draw < 0.08) return Protocol::kBreaker;
  if (draw < 0.09) return Protocol::kStaller;
  if (draw < 0.09 + rest_share) return random.chance(0.5) ? Protocol::kRestJson : Protocol::kRestBinary;
  return Protocol::kGrpc;
}

struct Mix {
  double rest, timeout, cancel, bad;
  std::int64_t shapes;
  bool large;
};

RequestPlan draw_request(Random& random, const Scenario& scenario, const Mix& mix) {
  const ModelPlan& model = scenario.model;
  RequestPlan plan;
  const std::int64_t most = std::max(model.max_batch_size, 1);
  plan.rows = random.chance(0.5) ? 1 : random.between(1, most);
  plan.width = random.between(0, mix.shapes);
  if (mix.large && random.chance(0.05)) plan.width = random.between(2000, 9000);
  plan.client = static_cast<std::uint32_t>(random.below(scenario.clients));
  plan.protocol = draw_protocol(random, mix.rest);
  if (random.chance(mix.timeout)) plan.timeout = log_uniform(random, microseconds(500), milliseconds(40));
  if (random.chance(mix.timeout)) plan.queue_timeout = log_uniform(random, microseconds(100), milliseconds(20));
  if (random.chance(mix.cancel)) plan.cancel_after = log_uniform(random, microseconds(10), milliseconds(20));
  if (model.priority_levels > 0) plan.priority = random.below(model.priority_levels + 1);
  const auto outputs = random.below(6);
  if (outputs == 0) plan.outputs = {"Y"};
  if (outputs == 1) plan.outputs = {"S"};
  if (outputs == 2) plan.outputs = {"S", "Y"};
  plan.inputs_reversed = random.chance(0.3);
  if (random.chance(mix.bad)) plan.unknown_model = true;
  if (model.max_batch_size > 0 && random.chance(mix.bad)) plan.rows = most + 1;
  return plan;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed, Front front) {
  Random random(seed ^ kScenarioStream);
  Scenario scenario;
  scenario.seed = seed;
  scenario.front = front;
  scenario.model = draw_model(random);
  scenario.engine = draw_engine(random);
  scenario.network = draw_network(random);
  scenario.server_loops = static_cast<std::uint32_t>(random.between(1, 3));
  scenario.clients = static_cast<std::uint32_t>(random.between(1, 4));
  scenario.client_window_bytes = pick<std::uint32_t>(random, {1 << 20, 65535, 1000});
  scenario.server_window_bytes = pick<std::uint32_t>(random, {1 << 20, 65535, 1000});
  if (random.chance(0.3)) scenario.max_body_bytes = 20'000;
  scenario.requests = static_cast<std::uint32_t>(random.between(20, 160));
  const Duration span = milliseconds(random.between(5, 60));
  if (random.chance(0.35)) scenario.drain_at = Duration(random.between(0, span.count()));
  if (random.chance(0.2)) {
    for (int i = 0; i < 2; ++i) scenario.client_losses.push_back(Duration(random.between(0, span.count())));
  }
  return scenario;
}

std::vector<RequestPlan> draw_workload(const Scenario& scenario) {
  Random random(scenario.seed ^ kWorkloadStream);
  const Mix mix{.rest = random.chance(0.7) ? random.unit() * 0.6 : 0,
                .timeout = random.chance(0.4) ? 0.3 : 0,
                .cancel = random.chance(0.4) ? 0.25 : 0,
                .bad = random.chance(0.3) ? 0.05 : 0,
                .shapes = random.between(0, 3),
                .large = random.chance(0.3)};
  std::vector<RequestPlan> plans;
  for (const Duration at : draw_arrivals(random, scenario.requests)) {
    plans.push_back(draw_request(random, scenario, mix));
    plans.back().at = at;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) plans[i].id = i + 1;
  return plans;
}

std::vector<RequestPlan> draw_probes(const Scenario& scenario, std::uint64_t first_id) {
  Random random(scenario.seed ^ kProbeStream);
  std::vector<RequestPlan> plans;
  for (std::uint32_t i = 0; i < kProbes && !scenario.drain_at; ++i) {
    RequestPlan plan;
    plan.id = first_id + i;
    plan.at = kProbeGap * static_cast<int>(i);
    plan.width = static_cast<std::int64_t>(random.below(3));
    plan.client = static_cast<std::uint32_t>(random.below(scenario.clients));
    plan.protocol = i % 2 == 0 ? Protocol::kGrpc : Protocol::kRestBinary;
    plan.probe = true;
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string describe(const Scenario& s) {
  const auto us = [](Duration d) { return std::chrono::duration_cast<microseconds>(d).count(); };
  return fmt::format(
      "seed {} {}: max_batch_size {} batching {} preferred {} delay {}us instances {} queue {} priorities {} inline {}"
      "; "
      "batch {}us + {}us/row slow {} death {}; loops {} clients {} requests {} latency {}..{}us window {} reset {} "
      "drain {}us losses {}",
      s.seed, s.front == Front::kDirect ? "direct" : "network", s.model.max_batch_size, s.model.batching,
      s.model.preferred, us(s.model.max_delay), s.model.instances, s.model.max_queue_size, s.model.priority_levels,
      s.model.runs_inline, us(s.engine.batch_cost), us(s.engine.row_cost), s.engine.slow_chance, s.engine.death_chance,
      s.server_loops, s.clients, s.requests, us(s.network.min_latency), us(s.network.max_latency),
      s.network.window_bytes, s.network.reset_chance, s.drain_at ? us(*s.drain_at) : -1, s.client_losses.size());
}

}  // namespace sluice::sim
