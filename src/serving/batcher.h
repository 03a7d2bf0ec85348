// The dynamic batcher, a pure core: which waiting requests run together, when, and on which instance. It owns
// no request, no clock and no thread; `(state, now, event) -> decisions`. Rules: Triton's dynamic batcher.
//
// The queue is the priority levels one after the other, highest first, each in order of arrival. A batch is a
// prefix of it: requests of equal shape key whose rows add up to at most `max_rows`. When an instance is free,
// the first rule that applies decides:
//
//   | what waits                                                      | the batch                 | reason       |
//   |-----------------------------------------------------------------|---------------------------|--------------|
//   | the oldest has waited max_delay (> 0), or draining              | all that fit in max_rows  | delay, drain |
//   | a prefix whose rows are a preferred size                        | the longest of these      | preferred    |
//   | rows reach the fill, or the next would exceed it or differs     | up to there               | full, shape  |
//   | anything, with max_delay = 0                                    | all                       | free         |
//   | else                                                            | none: wait for the delay  |              |
//
// The fill is the largest preferred size, or max_rows when there is none; a single request may be larger. A
// batch by delay or drain that could not have been larger is reported as full or shape change.
// Without `batching` each request is a batch of its own, taken as soon as an instance is free.
//
//   - A request whose deadline has passed, or that was cancelled, leaves the queue and is never run.
//   - At most max_queue_size requests wait.
//
// Not thread-safe; the shell (ModelQueue) holds the lock. Cost: enqueue, cancel and the taking of one request
// are O(1) plus, for a request with a deadline, O(log n); a decision is O(batch). Memory: one node a waiting
// request, kept for reuse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "stats/model_stats.h"

namespace sluice::serving {

struct BatcherOptions {
  std::int64_t max_rows = 1;                    // max_batch_size; 1 when the model has no batch dimension
  bool batching = false;                        // false: one request a batch
  std::vector<std::int64_t> preferred_rows;     // ascending; those above max_rows are left out
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
  std::uint32_t priority = 0;    // < priority_levels; anything beyond is the lowest
};

struct BatchDecision {
  std::uint32_t instance = 0;
  std::uint32_t first = 0, count = 0;  // its part of BatcherDecisions::requests
  std::int64_t rows = 0;
  CloseReason reason = CloseReason::kInstanceFree;
};

struct BatcherDecisions {
  std::vector<BatchDecision> batches;
  std::vector<RequestId> requests;    // of all batches, in the order of the queue
  std::vector<RequestId> expired;     // deadline passed
  Time next_event = kNever;           // call on_time() then (a later event may move it)

  std::span<const RequestId> requests_of(const BatchDecision& batch) const {
    return std::span(requests).subspan(batch.first, batch.count);
  }
  void clear();  // keeps the memory
};

class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options);
  ~Batcher();

  // Each event appends to `out` and sets its next_event. The request may be dispatched in the same call.
  // kResourceExhausted when the queue is full (names the limit), kInvalidArgument for rows outside
  // [1, max_rows], kUnavailable while draining, kDeadlineExceeded when it has passed already.
  Status enqueue(const QueuedRequest& request, Time now, BatcherDecisions& out);
  // True when it was waiting and is gone now; false when it was dispatched, expired or never there.
  bool cancel(RequestId id, Time now, BatcherDecisions& out);
  // The batch on it is over.
  void on_instance_free(std::uint32_t instance, Time now, BatcherDecisions& out);
  // The instance is gone, and the batch on it with it (no on_instance_free for that one); or it is back, free.
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
