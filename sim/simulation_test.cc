#include "simulation.h"

#include <gtest/gtest.h>

namespace sluice::sim {
namespace {

TEST(Simulation, ASeedReplaysItsHistoryEventForEvent) {
  io::ComputePool compute({.threads = 1});
  for (const Front front : {Front::kDirect, Front::kNetwork}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Scenario scenario = draw_scenario(seed, front);
      const RunReport first = run_scenario(scenario, compute), second = run_scenario(scenario, compute);
      EXPECT_EQ(first.digest, second.digest) << describe(scenario);
      EXPECT_EQ(first.events, second.events) << describe(scenario);
      EXPECT_NE(first.digest, run_scenario(draw_scenario(seed + 100, front), compute).digest) << "seed " << seed;
    }
  }
}

// A simulation that never gets into trouble proves nothing.
TEST(Simulation, TheSeedsReachWhatTheyAreFor) {
  std::uint64_t deaths = 0, drains = 0, small_queues = 0, delays = 0, cancels = 0, deadlines = 0, losses = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Scenario scenario = draw_scenario(seed, Front::kNetwork);
    deaths += scenario.engine.death_chance > 0 ? 1 : 0;
    drains += scenario.drain_at ? 1 : 0;
    small_queues += scenario.model.max_queue_size < 25 ? 1 : 0;
    delays += scenario.model.max_delay > Duration{0} ? 1 : 0;
    losses += scenario.client_losses.empty() ? 0 : 1;
    for (const RequestPlan& plan : draw_workload(scenario)) {
      cancels += plan.cancel_after ? 1 : 0;
      deadlines += plan.timeout || plan.queue_timeout ? 1 : 0;
    }
  }
  for (const auto count : {deaths, drains, small_queues, delays, losses}) EXPECT_GT(count, 10U);
  for (const auto count : {cancels, deadlines}) EXPECT_GT(count, 300U);
}

}  // namespace
}  // namespace sluice::sim
