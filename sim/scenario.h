// What one run is: the model, its costs, the clients, the network, the faults. Drawn from a seed; the same
// seed gives the same scenario and workload whatever the code under test does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "io/sim/sim_world.h"

namespace sluice::sim {

// Where requests enter: straight into the model's queue, or over the simulated network through HTTP.
enum class Front : std::uint8_t { kDirect, kNetwork };

enum class Protocol : std::uint8_t {
  kGrpc,
  kRestJson,
  kRestBinary,
  kSlowReader,  // HTTP/1.1, takes its answer in small sips
  kBreaker,     // HTTP/1.1, goes away at some moment
  kStaller,     // HTTP/1.1, stops in the middle of its request and stays
};

struct ModelPlan {
  std::int32_t max_batch_size = 8;  // 0 = no batch dimension
  bool batching = true;
  std::vector<std::int32_t> preferred;
  Duration max_delay{0};
  std::uint32_t instances = 1;
  std::uint32_t max_queue_size = 4096;
  std::uint32_t priority_levels = 0;
  Duration default_timeout{0};  // of the queue; 0 = none
  bool runs_inline = false;
};

struct EnginePlan {
  Duration batch_cost{0}, row_cost{0};
  double slow_chance = 0;  // a batch takes slow_factor times as long
  int slow_factor = 1;
  double death_chance = 0;  // the instance dies in the middle of the batch ...
  Duration restart{0};      // ... and takes this long to be back
};

inline constexpr std::size_t kNoBodyLimit = std::size_t{1} << 30;

struct Scenario {
  std::uint64_t seed = 0;
  Front front = Front::kNetwork;
  ModelPlan model;
  EnginePlan engine;
  io::SimNetworkOptions network;
  std::uint32_t server_loops = 1, clients = 1;
  std::uint32_t client_window_bytes = 1 << 20, server_window_bytes = 1 << 20;  // HTTP/2's, of a stream
  std::size_t max_body_bytes = kNoBodyLimit;  // of the server
  std::uint32_t requests = 0;
  std::optional<Duration> drain_at;
  std::vector<Duration> client_losses;  // a client's connections all break
};

struct RequestPlan {
  std::uint64_t id = 0;
  Duration at{0};  // since the start of its phase
  std::int64_t rows = 1;
  std::int64_t width = 1;
  std::uint32_t client = 0;
  Protocol protocol = Protocol::kGrpc;
  std::optional<Duration> timeout;        // of the client, and grpc-timeout
  std::optional<Duration> queue_timeout;  // the request's `timeout` parameter
  std::optional<Duration> cancel_after;
  std::uint64_t priority = 0;
  std::vector<std::string> outputs;  // empty = all
  bool inputs_reversed = false;
  bool unknown_model = false;
  bool probe = false;  // sent after the faults have healed: must succeed
};

Scenario draw_scenario(std::uint64_t seed, Front front);
// By time; ids count from 1. Faults happen until the last of them has been sent.
std::vector<RequestPlan> draw_workload(const Scenario& scenario);
// A few simple requests for the time after: all must succeed. None when the scenario ends in a drain.
std::vector<RequestPlan> draw_probes(const Scenario& scenario, std::uint64_t first_id);
std::string describe(const Scenario& scenario);  // one line

}  // namespace sluice::sim
