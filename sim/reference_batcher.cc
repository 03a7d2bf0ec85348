#include "reference_batcher.h"

#include <algorithm>

namespace sluice::sim {

using serving::QueuedRequest;
using serving::RequestId;

std::set<Code> ReferenceBatcher::refusals(const QueuedRequest& request, Time now, Outcome& out) {
  std::set<Code> codes;
  if (request.rows < 1 || request.rows > options_.max_rows) codes.insert(Code::kInvalidArgument);
  if (draining_) codes.insert(Code::kUnavailable);
  if (request.deadline <= now) codes.insert(Code::kDeadlineExceeded);
  if (codes.empty() && waiting_.size() >= options_.max_queue_size) settle(now, out);
  if (waiting_.size() >= options_.max_queue_size) codes.insert(Code::kResourceExhausted);
  return codes;
}

void ReferenceBatcher::enqueue(const QueuedRequest& request, Time now) {
  const auto behind = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
    return other.request.priority > request.priority;
  });
  waiting_.insert(behind, Waiting{request, now});
}

bool ReferenceBatcher::cancel(RequestId id, Time now, Outcome& out) {
  expire(now, out);
  return std::erase_if(waiting_, [&](const Waiting& other) { return other.request.id == id; }) > 0;
}

void ReferenceBatcher::expire(Time now, Outcome& out) {
  std::erase_if(waiting_, [&](const Waiting& other) {
    if (other.request.deadline > now) return false;
    out.expired.insert(other.request.id);
    return true;
  });
}

std::int64_t ReferenceBatcher::waiting_rows() const {
  std::int64_t rows = 0;
  for (const Waiting& each : waiting_) rows += each.request.rows;
  return rows;
}

Time ReferenceBatcher::oldest() const {
  Time oldest = kNever;
  for (const Waiting& each : waiting_) oldest = std::min(oldest, each.since);
  return oldest;
}

bool ReferenceBatcher::overdue(Time now) const {
  return draining_ || (options_.max_delay > Duration{0} && now - oldest() >= options_.max_delay);
}

// The requests at the front of equal shape whose rows stay within the limit (the first one always does).
// `closed`: one more could not have been taken even if it came now.
ReferenceBatcher::Taken ReferenceBatcher::longest_prefix(std::int64_t limit, bool& closed) const {
  Taken taken;
  closed = false;
  for (const Waiting& each : waiting_) {
    const QueuedRequest& request = each.request;
    if (!taken.requests.empty() && request.shape_key != waiting_.front().request.shape_key) {
      taken.reason = CloseReason::kShapeChange;
      closed = true;
      return taken;
    }
    if (!taken.requests.empty() && taken.rows + request.rows > limit) break;
    taken.requests.push_back(request.id);
    taken.rows += request.rows;
    if (taken.rows >= limit) break;
  }
  closed = taken.rows >= limit || taken.requests.size() < waiting_.size();
  if (closed) taken.reason = CloseReason::kFull;
  return taken;
}

std::optional<ReferenceBatcher::Taken> ReferenceBatcher::next_batch(Time now) const {
  if (!options_.batching) {
    const QueuedRequest& first = waiting_.front().request;
    return Taken{{first.id}, first.rows, CloseReason::kInstanceFree};
  }
  bool closed = false;
  if (overdue(now)) {
    Taken all = longest_prefix(options_.max_rows, closed);
    if (!closed) all.reason = draining_ ? CloseReason::kDrain : CloseReason::kDelay;
    return all;
  }
  std::int64_t fill = 0;
  for (const std::int64_t rows : options_.preferred_rows) {
    if (rows <= options_.max_rows) fill = std::max(fill, rows);
  }
  if (fill == 0) fill = options_.max_rows;
  const Taken all = longest_prefix(fill, closed);
  Taken shorter = all;
  while (!shorter.requests.empty()) {
    if (std::ranges::count(options_.preferred_rows, shorter.rows) > 0) {
      shorter.reason = CloseReason::kPreferred;
      return shorter;
    }
    shorter.rows -= waiting_[shorter.requests.size() - 1].request.rows;
    shorter.requests.pop_back();
  }
  if (!closed && options_.max_delay > Duration{0}) return std::nullopt;
  return all;
}

void ReferenceBatcher::settle(Time now, Outcome& out) {
  expire(now, out);
  while (free_instances_ > 0 && !waiting_.empty()) {
    const auto batch = next_batch(now);
    if (!batch) break;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(batch->requests.size()));
    --free_instances_;
    out.batches.push_back(*batch);
  }
  out.latest_next_event = kNever;
  for (const Waiting& each : waiting_) out.latest_next_event = std::min(out.latest_next_event, each.request.deadline);
  if (free_instances_ > 0 && !waiting_.empty()) {
    out.latest_next_event = std::min(out.latest_next_event, oldest() + options_.max_delay);
  }
}

}  // namespace sluice::sim
