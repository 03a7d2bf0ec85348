#include "cli/load_generator.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "io/sim/sim_world.h"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// A server in virtual time: each request takes `service`, one after another.
class SerialServer {
 public:
  SerialServer(io::SimWorld& world, Duration service) : world_(world), service_(service) {}
  void send(LoadGenerator::Done done) {
    free_at_ = std::max(free_at_, world_.now()) + service_;
    auto shared = std::make_shared<LoadGenerator::Done>(std::move(done));
    world_.at(free_at_, [shared] { (*shared)({}); });
    ++sent_;
    outstanding_ = std::max(outstanding_, static_cast<std::int64_t>((free_at_ - world_.now()) / service_));
  }
  void stall_until(Time time) { free_at_ = std::max(free_at_, time); }
  int sent() const { return sent_; }
  std::int64_t most_outstanding() const { return outstanding_; }

 private:
  io::SimWorld& world_;
  Duration service_;
  Time free_at_{};
  int sent_ = 0;
  std::int64_t outstanding_ = 0;
};

LoadResult run(io::SimWorld& world, SerialServer& server, const LoadOptions& options) {
  io::Loop& loop = world.make_loop("client");
  auto generator =
      std::make_unique<LoadGenerator>(loop, options, [&](LoadGenerator::Done done) { server.send(std::move(done)); });
  bool finished = false;
  loop.post([&] { generator->start([&] { finished = true; }); });
  EXPECT_TRUE(world.run_until([&] { return finished; }, 10min));
  return generator->result();
}

TEST(LoadGenerator, ClosedLoopKeepsItsConcurrency) {
  io::SimWorld world(1);
  SerialServer server(world, 1ms);
  const auto result = run(world, server, {.concurrency = 4, .warmup = 100ms, .duration = 1s});
  EXPECT_EQ(server.most_outstanding(), 4);
  EXPECT_NEAR(static_cast<double>(result.completed), 1000, 6);
  EXPECT_NEAR(static_cast<double>(result.latency_ns.percentile(50)), 4e6, 1e5);
}

TEST(LoadGenerator, OpenLoopSendsAtItsRateAndCountsTheStallAgainstTheServer) {
  io::SimWorld world(1);
  SerialServer server(world, 10us);
  server.stall_until(world.now() + 500ms);
  const auto result = run(world, server, {.rate = 1000, .warmup = 0s, .duration = 1s, .poisson = false});
  EXPECT_EQ(result.completed, 1000U);
  // Half of the arrivals met a server that was stalled for up to 500 ms: their wait is in the percentiles.
  EXPECT_GT(result.latency_ns.percentile(75), 200'000'000);
  EXPECT_GT(result.latency_ns.max(), 480'000'000);
}

TEST(LoadGenerator, StopsAtItsCountAndDropsBeyondItsBound) {
  io::SimWorld world(1);
  SerialServer server(world, 1ms);
  EXPECT_EQ(run(world, server, {.concurrency = 2, .warmup = 0s, .duration = 1h, .max_requests = 50}).completed, 50U);
  io::SimWorld other(1);
  SerialServer slow(other, 1s);
  const auto result =
      run(other, slow, {.rate = 100, .warmup = 0s, .duration = 1s, .max_outstanding = 10, .poisson = false});
  EXPECT_EQ(result.completed + result.dropped, 100U);
  EXPECT_GT(result.dropped, 85U);
}

}  // namespace
}  // namespace sluice::cli
