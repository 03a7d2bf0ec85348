// A simulated engine behind the real seam (engine::BatchModel): instances that take virtual time by a
// batch-cost model, compute tensors.h's arithmetic, are slow now and then, and die in the middle of a batch.
//
// It checks what it is given (checker "engine"): bounds, equal shapes, right inputs, no request twice, none
// that had left the queue, and in direct runs that no request waited beside a free instance.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/batch_model.h"
#include "io/sim/sim_world.h"
#include "ledger.h"
#include "scenario.h"
#include "tensor/buffer.h"

namespace sluice::sim {

class SimModel final : public engine::BatchModel {
 public:
  struct World {
    io::SimWorld& world;
    Ledger& ledger;
    Arena& arena;
  };
  SimModel(const Scenario& scenario, World world);

  const ModelSignature& signature() const override { return signature_; }
  void submit(engine::Batch batch, engine::BatchDone done) override;
  engine::MemoryFigures memory() const override { return {}; }
  bool runs_inline() const override { return scenario_.model.runs_inline; }

  void heal() { healthy_ = true; }  // no slow batch and no death any more
  std::uint64_t batches_done() const { return batches_done_; }
  std::uint64_t rows_done() const { return rows_done_; }
  std::uint32_t in_flight() const { return in_flight_; }

 private:
  struct Job;
  struct Cost {
    Duration length;
    bool dies;
  };

  void check_bounds(const engine::Batch& batch);
  std::vector<std::uint64_t> check_items(const engine::Batch& batch);
  void check_request(RequestRecord& record, const engine::BatchItem& item);
  void check_wait(const RequestRecord& record);
  Cost draw_cost(std::int64_t rows);
  void run_inline(Job job);
  void finish(Job& job);
  Result<engine::BatchOutput> compute(const Job& job);
  void report(std::string text) { ledger_.findings.add("engine", std::move(text)); }

  const Scenario& scenario_;
  io::SimWorld& world_;
  Ledger& ledger_;
  Arena& arena_;
  Random random_;
  ModelSignature signature_;
  std::unique_ptr<io::Executor> workers_;  // what calls back runs on none of the loops
  std::vector<Time> instance_back_at_;
  std::vector<bool> instance_busy_;
  std::uint32_t in_flight_ = 0;
  Time free_since_{};  // an instance has been free from then on; kNever: none is
  bool healthy_ = false;
  std::uint64_t batches_done_ = 0, rows_done_ = 0;
};

}  // namespace sluice::sim
