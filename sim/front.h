// Where the simulated requests enter. Two ways: straight into the model's queue (thousands of seeds, exact
// knowledge of deadlines and waits), or through clients, network, HTTP server and handlers.
#pragma once

#include <memory>
#include <vector>

#include "base/function.h"
#include "io/compute.h"
#include "io/sim/sim_world.h"
#include "ledger.h"
#include "scenario.h"
#include "serving/served_model.h"
#include "stats/log.h"
#include "tensor/buffer.h"

namespace sluice::sim {

// What a run is made of. Outlives the front.
struct Stage {
  const Scenario& scenario;
  io::SimWorld& world;
  Ledger& ledger;
  std::vector<io::Loop*> server_loops;
  std::vector<io::Loop*> client_loops;
  Arena& server_arena;
  Arena& client_arena;
  std::shared_ptr<serving::ServedModel> model;
  const Log& log;
  io::ComputePool& compute;  // only to be handed on: nothing runs on it
};

class RequestFront {
 public:
  virtual ~RequestFront() = default;
  // The request's answer goes to the ledger. From world events.
  virtual void send(RequestRecord& record) = 0;
  virtual void cancel(RequestRecord& record) = 0;
  // Stops as a replica does; `drained` once.
  virtual void drain(Function<void()> drained) = 0;
  virtual void lose_client(std::uint32_t client) = 0;
  // Clients leave; then what is still open is reported.
  virtual void close() = 0;
};

std::unique_ptr<RequestFront> make_direct_front(Stage& stage);
std::unique_ptr<RequestFront> make_network_front(Stage& stage);

}  // namespace sluice::sim
