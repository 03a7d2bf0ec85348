// What the batcher must decide, written as plainly as its contract (serving/batcher.h): one list, looked at
// anew after each event. Slow and obvious, where the real one is quick; batcher_sim_test compares them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "serving/batcher.h"

namespace sluice::sim {

class ReferenceBatcher {
 public:
  struct Taken {
    std::vector<serving::RequestId> requests;
    std::int64_t rows = 0;
    CloseReason reason = CloseReason::kInstanceFree;
    friend bool operator==(const Taken&, const Taken&) = default;
  };
  struct Outcome {
    std::vector<Taken> batches;
    std::set<serving::RequestId> expired;
    Time latest_next_event = kNever;  // it must not sleep longer
  };

  explicit ReferenceBatcher(const serving::BatcherOptions& options) : options_(options) {
    free_instances_ = std::max(options.instances, 1U);
  }

  // Why the request may be refused; empty: it must be accepted. What is due is settled into `out` first when
  // the queue is full.
  std::set<Code> refusals(const serving::QueuedRequest& request, Time now, Outcome& out);
  void enqueue(const serving::QueuedRequest& request, Time now);
  bool cancel(serving::RequestId id, Time now, Outcome& out);
  void instance_free() { ++free_instances_; }
  void instance_lost_while_free() { --free_instances_; }
  void drain() { draining_ = true; }
  // After every event.
  void settle(Time now, Outcome& out);

  std::size_t waiting() const { return waiting_.size(); }
  std::int64_t waiting_rows() const;

 private:
  struct Waiting {
    serving::QueuedRequest request;
    Time since;
  };

  void expire(Time now, Outcome& out);
  Time oldest() const;
  bool overdue(Time now) const;
  std::optional<Taken> next_batch(Time now) const;
  Taken longest_prefix(std::int64_t limit, bool& closed) const;

  serving::BatcherOptions options_;
  std::vector<Waiting> waiting_;  // in the queue's order: by level, then arrival
  std::uint32_t free_instances_;
  bool draining_ = false;
};

}  // namespace sluice::sim
