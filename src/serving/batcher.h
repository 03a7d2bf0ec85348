// The dynamic batcher, a pure core: which waiting requests run together, when, and on which instance. It owns
// no request, no clock and no thread; `(state, now, event) -> decisions`. Rules: Triton's dynamic batcher.
//
//   - An instance that is free takes a batch when: a full batch waits (max rows reached, or the next request
//     would not fit or has another shape), or a preferred size is reached, or the oldest has waited
//     max_queue_delay, or the delay is 0.
//   - With a delay: a batch grows to the largest preferred size it can reach at once; beyond it waits.
//   - Requests of one batch are consecutive in the queue (per priority level, highest first) and have equal
//     shape keys; their rows add up to at most max_rows. One request of more than max_rows is refused.
//   - A request whose deadline has passed, or that was cancelled, leaves the queue and is never run.
//   - At most max_queue_size requests wait.
//
// Not thread-safe; the shell (ModelQueue) holds the lock. Every operation is O(1) or O(batch), cancel
// included. Memory: one node a waiting request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "stats/model_stats.h"

namespace sluice::serving {

struct BatcherOptions {
  std::int64_t max_rows = 1;                    // max_batch_size; 1 when the model has no batch dimension
  bool batching = false;                        // false: one request a batch
  std::vector<std::int64_t> preferred_rows;     // ascending
  Duration max_delay{0};
  std::size_t max_queue_size = 4096;
  std::uint32_t instances = 1;
  std::uint32_t priority_levels = 1;            // level 0 is the highest
};

using RequestId = std::uint64_t;  // the caller's; unique among those waiting

struct QueuedRequest {
  RequestId id = 0;
  std::int64_t rows = 1;
  std::uint64_t shape_key = 0;   // equal keys = shapes equal beyond the batch dimension
  Time deadline = kNever;        // in the queue; then it expires
  std::uint32_t priority = 0;    // < priority_levels
};

struct BatchDecision {
  std::uint32_t instance = 0;
  std::vector<RequestId> requests;  // in order of arrival within their level
  std::int64_t rows = 0;
  CloseReason reason = CloseReason::kInstanceFree;
};

struct BatcherDecisions {
  std::vector<BatchDecision> batches;
  std::vector<RequestId> expired;     // deadline passed
  Time next_event = kNever;           // call on_time() then (a later event may move it)
  void clear();
};

class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options);
  ~Batcher();

  // kResourceExhausted when the queue is full (names the limit), kInvalidArgument for rows outside
  // [1, max_rows], kUnavailable while draining, kDeadlineExceeded when it has passed already.
  // Appends to `out`; the request may be dispatched in the same call.
  Status enqueue(const QueuedRequest& request, Time now, BatcherDecisions& out);
  // True when it was waiting and is gone now; false when it was dispatched, expired or never there.
  bool cancel(RequestId id, Time now, BatcherDecisions& out);
  void on_instance_free(std::uint32_t instance, Time now, BatcherDecisions& out);
  // The instance is gone (its batch failed with it) or back.
  void set_instance_available(std::uint32_t instance, bool available, Time now, BatcherDecisions& out);
  void on_time(Time now, BatcherDecisions& out);
  // No new requests; what waits is dispatched without delay.
  void drain(Time now, BatcherDecisions& out);

  std::size_t waiting() const;
  std::int64_t waiting_rows() const;
  std::uint32_t busy_instances() const;
  bool idle() const;  // nothing waits, nothing runs

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::serving
