// What must always hold, looked at when a run is over. Each adds its findings under its own name; the engine
// (sim_model.h), the sinks and the clients check what they see as it happens.
#pragma once

#include <cstdint>

#include "ledger.h"
#include "scenario.h"
#include "stats/model_stats.h"
#include "tensor/buffer.h"

namespace sluice::sim {

// Exactly one answer per request.
void check_answers(Ledger& ledger);
// Every error has its reason in the scenario, and a request whose batch succeeded is answered with it unless
// its client gave up, ran out of time or lost its connection. Probes succeed.
void check_reasons(const Scenario& scenario, Ledger& ledger, Time drain_began);
// Cancelled and expired requests that had not started leave at once and never run.
void check_prompt_ends(const Scenario& scenario, Ledger& ledger);
// The statistics count each request, batch and row once.
void check_statistics(const Scenario& scenario, Ledger& ledger, const ModelStatsSnapshot& stats,
                      std::uint64_t batches, std::uint64_t rows);

struct Leftovers {
  std::size_t waiting = 0, in_flight = 0;       // of the queue
  std::size_t server_blocks = 0, client_blocks = 0;
  std::size_t streams = 0;
};
// Nothing is left when everything has ended.
void check_leftovers(Ledger& ledger, const Leftovers& leftovers);

}  // namespace sluice::sim
