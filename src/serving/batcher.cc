#include "serving/batcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "serving/wait_queue.h"

namespace sluice::serving {

void BatcherDecisions::clear() {
  batches.clear();
  requests.clear();
  expired.clear();
  next_event = kNever;
}

class Batcher::State {
 public:
  explicit State(const BatcherOptions& options);

  Status enqueue(const QueuedRequest& request, Time now, BatcherDecisions& out);
  bool cancel(RequestId id, Time now, BatcherDecisions& out);
  void set_instance(std::uint32_t instance, bool available);
  void free_instance(std::uint32_t instance);
  // What every event ends with: expires, dispatches while something can be, and tells the next event.
  void settle(Time now, BatcherDecisions& out);
  void drain() { draining_ = true; }

  const WaitQueue& queue() const { return queue_; }
  std::uint32_t busy() const { return busy_; }

 private:
  enum class InstanceState : std::uint8_t { kFree, kBusy, kGone };

  // A batch that may be taken: a prefix of the queue.
  struct Prefix {
    std::uint32_t count = 0;
    std::int64_t rows = 0;
    CloseReason reason = CloseReason::kInstanceFree;
  };
  enum class End : std::uint8_t { kQueue, kFull, kShapeChange };
  struct Reach {
    Prefix all;        // as many as fit
    Prefix preferred;  // the longest with a preferred size; count 0: none
    End end = End::kQueue;
  };

  Status admit(const QueuedRequest& request, Time now, BatcherDecisions& out);
  void expire(Time now, BatcherDecisions& out);
  bool overdue(Time now) const;
  Reach reach(std::int64_t limit) const;
  Prefix choose(Time now) const;  // count 0: nothing yet
  void take(const Prefix& prefix, BatcherDecisions& out);
  bool still_open(const QueuedRequest& request, Time now) const;

  std::int64_t max_rows_;
  bool batching_;
  std::vector<std::int64_t> preferred_rows_;
  std::int64_t fill_rows_;
  Duration max_delay_;
  std::size_t max_queue_size_;
  bool draining_ = false;
  // The last decision was to wait: everything waiting is one batch that is still open. A request at the end
  // of the queue then needs no new look at those before it.
  bool open_ = false;

  WaitQueue queue_;
  std::vector<InstanceState> instances_;
  std::vector<std::uint32_t> free_;  // the one used last is taken first: its memory is warm
  std::uint32_t busy_ = 0;
};

Batcher::State::State(const BatcherOptions& options)
    : max_rows_(std::max<std::int64_t>(options.max_rows, 1)),
      batching_(options.batching),
      max_delay_(options.max_delay),
      max_queue_size_(options.max_queue_size),
      queue_(options.priority_levels),
      instances_(std::max(options.instances, 1u), InstanceState::kFree) {
  for (const std::int64_t rows : options.preferred_rows) {
    if (rows >= 1 && rows <= max_rows_) preferred_rows_.push_back(rows);
  }
  std::ranges::sort(preferred_rows_);
  fill_rows_ = preferred_rows_.empty() ? max_rows_ : preferred_rows_.back();
  for (std::size_t i = instances_.size(); i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

Status Batcher::State::admit(const QueuedRequest& request, Time now, BatcherDecisions& out) {
  if (request.rows < 1 || request.rows > max_rows_) {
    return fail(Code::kInvalidArgument,
                fmt::format("a request of {} rows: expected 1 to {} (max_batch_size)", request.rows, max_rows_));
  }
  if (draining_) return fail(Code::kUnavailable, "the model is being unloaded");
  if (request.deadline <= now) {
    return fail(Code::kDeadlineExceeded, "the request's deadline had passed before it could be queued");
  }
  if (queue_.size() >= max_queue_size_) settle(now, out);  // what is due makes room
  if (queue_.size() >= max_queue_size_) {
    Error error{Code::kResourceExhausted, fmt::format("the queue is full: {} requests wait (max_queue_size {})",
                                                      queue_.size(), max_queue_size_)};
    error.retry_after_s = 1;
    return fail(std::move(error));
  }
  return {};
}

Status Batcher::State::enqueue(const QueuedRequest& request, Time now, BatcherDecisions& out) {
  Status admitted = admit(request, now, out);
  if (admitted) {
    queue_.push(request, now);
    open_ = open_ && still_open(request, now);
  }
  settle(now, out);
  return admitted;
}

bool Batcher::State::cancel(RequestId id, Time now, BatcherDecisions& out) {
  expire(now, out);
  const WaitQueue::Slot slot = queue_.find(id);
  const bool waiting = slot != WaitQueue::kEnd;
  if (waiting) {
    queue_.remove(slot);
    open_ = false;
  }
  settle(now, out);
  return waiting;
}

void Batcher::State::free_instance(std::uint32_t instance) {
  SLUICE_CHECK(instance < instances_.size(), "an instance of this batcher");
  if (instances_[instance] != InstanceState::kBusy) return;  // gone in the meantime
  instances_[instance] = InstanceState::kFree;
  free_.push_back(instance);
  --busy_;
}

void Batcher::State::set_instance(std::uint32_t instance, bool available) {
  SLUICE_CHECK(instance < instances_.size(), "an instance of this batcher");
  InstanceState& state = instances_[instance];
  if (available && state == InstanceState::kGone) {
    state = InstanceState::kFree;
    free_.push_back(instance);
  } else if (!available) {
    if (state == InstanceState::kFree) std::erase(free_, instance);
    if (state == InstanceState::kBusy) --busy_;
    state = InstanceState::kGone;
  }
}

void Batcher::State::settle(Time now, BatcherDecisions& out) {
  expire(now, out);
  while (!free_.empty() && queue_.size() > 0 && !(open_ && !overdue(now))) {
    const Prefix prefix = choose(now);
    open_ = prefix.count == 0;
    if (open_) break;
    take(prefix, out);
  }
  out.next_event = kNever;
  const WaitQueue::Slot soonest = queue_.next_to_expire();
  if (soonest != WaitQueue::kEnd) out.next_event = queue_[soonest].deadline;
  // What still waits beside a free instance waits for its delay.
  if (!free_.empty() && queue_.size() > 0) {
    out.next_event = std::min(out.next_event, saturating_add(queue_.oldest(), max_delay_));
  }
}

void Batcher::State::expire(Time now, BatcherDecisions& out) {
  for (;;) {
    const WaitQueue::Slot slot = queue_.next_to_expire();
    if (slot == WaitQueue::kEnd || queue_[slot].deadline > now) return;
    out.expired.push_back(queue_[slot].id);
    queue_.remove(slot);
    open_ = false;
  }
}

bool Batcher::State::overdue(Time now) const {
  return draining_ || (max_delay_ > Duration{0} && now >= saturating_add(queue_.oldest(), max_delay_));
}

Batcher::State::Reach Batcher::State::reach(std::int64_t limit) const {
  Reach reach;
  std::uint64_t shape_key = 0;
  auto preferred = preferred_rows_.begin();
  for (WaitQueue::Slot slot = queue_.first(); slot != WaitQueue::kEnd; slot = queue_.after(slot)) {
    const WaitQueue::Node& node = queue_[slot];
    if (reach.all.count == 0) shape_key = node.shape_key;  // the first one always fits
    else if (node.shape_key != shape_key) reach.end = End::kShapeChange;
    else if (node.rows > limit - reach.all.rows) reach.end = End::kFull;
    if (reach.end != End::kQueue) return reach;
    ++reach.all.count;
    reach.all.rows += node.rows;
    while (preferred != preferred_rows_.end() && *preferred < reach.all.rows) ++preferred;
    if (preferred != preferred_rows_.end() && *preferred == reach.all.rows) reach.preferred = reach.all;
    if (reach.all.rows >= limit) {
      reach.end = End::kFull;
      return reach;
    }
  }
  return reach;
}

Batcher::State::Prefix Batcher::State::choose(Time now) const {
  if (!batching_) return Prefix{1, queue_[queue_.first()].rows, CloseReason::kInstanceFree};
  const bool overdue = this->overdue(now);
  Reach reach = this->reach(overdue ? max_rows_ : fill_rows_);
  if (!overdue && reach.preferred.count > 0) {
    reach.preferred.reason = CloseReason::kPreferred;
    return reach.preferred;
  }
  switch (reach.end) {
    case End::kFull: reach.all.reason = CloseReason::kFull; break;
    case End::kShapeChange: reach.all.reason = CloseReason::kShapeChange; break;
    case End::kQueue:
      if (!overdue && max_delay_ > Duration{0}) return Prefix{};
      reach.all.reason = draining_ ? CloseReason::kDrain
                         : overdue ? CloseReason::kDelay
                                   : CloseReason::kInstanceFree;
  }
  return reach.all;
}

void Batcher::State::take(const Prefix& prefix, BatcherDecisions& out) {
  const std::uint32_t instance = free_.back();
  free_.pop_back();
  instances_[instance] = InstanceState::kBusy;
  ++busy_;
  out.batches.push_back(BatchDecision{.instance = instance, .first = static_cast<std::uint32_t>(out.requests.size()),
                                      .count = prefix.count, .rows = prefix.rows, .reason = prefix.reason});
  for (std::uint32_t i = 0; i < prefix.count; ++i) {
    const WaitQueue::Slot slot = queue_.first();
    out.requests.push_back(queue_[slot].id);
    queue_.remove(slot);
  }
}

// Whether the open batch is open with this request at its end, too.
bool Batcher::State::still_open(const QueuedRequest& request, Time now) const {
  const WaitQueue::Slot slot = queue_.find(request.id);
  return queue_.is_last(slot) && queue_[queue_.first()].shape_key == request.shape_key &&
         queue_.rows() < fill_rows_ && !std::ranges::binary_search(preferred_rows_, queue_.rows()) &&
         !overdue(now);
}

Batcher::Batcher(const BatcherOptions& options) : state_(std::make_unique<State>(options)) {}
Batcher::~Batcher() = default;

Status Batcher::enqueue(const QueuedRequest& request, Time now, BatcherDecisions& out) {
  return state_->enqueue(request, now, out);
}

bool Batcher::cancel(RequestId id, Time now, BatcherDecisions& out) { return state_->cancel(id, now, out); }

void Batcher::on_instance_free(std::uint32_t instance, Time now, BatcherDecisions& out) {
  state_->free_instance(instance);
  state_->settle(now, out);
}

void Batcher::set_instance_available(std::uint32_t instance, bool available, Time now, BatcherDecisions& out) {
  state_->set_instance(instance, available);
  state_->settle(now, out);
}

void Batcher::on_time(Time now, BatcherDecisions& out) { state_->settle(now, out); }

void Batcher::drain(Time now, BatcherDecisions& out) {
  state_->drain();
  state_->settle(now, out);
}

std::size_t Batcher::waiting() const { return state_->queue().size(); }
std::int64_t Batcher::waiting_rows() const { return state_->queue().rows(); }
std::uint32_t Batcher::busy_instances() const { return state_->busy(); }
bool Batcher::idle() const { return waiting() == 0 && busy_instances() == 0; }

}  // namespace sluice::serving
