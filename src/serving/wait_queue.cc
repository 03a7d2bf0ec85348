#include "serving/wait_queue.h"

#include <algorithm>

#include "base/check.h"
#include "serving/batcher.h"

namespace sluice::serving {

namespace {
constexpr std::size_t kInitialEntries = 64;
}

SlotIndex::SlotIndex() : entries_(kInitialEntries) {}

std::size_t SlotIndex::home(std::uint64_t id) const {
  // Fibonacci hashing: the high half of the product depends on every bit of the id.
  return static_cast<std::size_t>((id * 0x9E3779B97F4A7C15u) >> 32) & (entries_.size() - 1);
}

std::size_t SlotIndex::locate(std::uint64_t id) const {
  std::size_t at = home(id);
  while (entries_[at].slot != kNone && entries_[at].id != id) at = (at + 1) & (entries_.size() - 1);
  return at;
}

std::uint32_t SlotIndex::find(std::uint64_t id) const { return entries_[locate(id)].slot; }

void SlotIndex::insert(std::uint64_t id, std::uint32_t slot) {
  if ((size_ + 1) * 2 > entries_.size()) grow();
  entries_[locate(id)] = {id, slot};
  ++size_;
}

void SlotIndex::erase(std::uint64_t id) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t hole = locate(id);
  // Moves later entries of the run back, so that no probe meets a hole before its entry.
  for (std::size_t at = (hole + 1) & mask; entries_[at].slot != kNone; at = (at + 1) & mask) {
    const std::size_t distance = (at - home(entries_[at].id)) & mask;
    if (distance >= ((at - hole) & mask)) {
      entries_[hole] = entries_[at];
      hole = at;
    }
  }
  entries_[hole].slot = kNone;
  --size_;
}

void SlotIndex::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (entry.slot != kNone) entries_[locate(entry.id)] = entry;
  }
}

WaitQueue::WaitQueue(std::uint32_t levels) : levels_(std::max(levels, 1u)) {}

WaitQueue::Slot WaitQueue::head_from(std::uint32_t level) const {
  for (; level < levels_.size(); ++level) {
    if (levels_[level].head != kEnd) return levels_[level].head;
  }
  return kEnd;
}

WaitQueue::Slot WaitQueue::take_slot() {
  if (free_ == kEnd) {
    nodes_.emplace_back();
    return static_cast<Slot>(nodes_.size() - 1);
  }
  const Slot slot = free_;
  free_ = nodes_[slot].next;
  return slot;
}

void WaitQueue::push(const QueuedRequest& request, Time now) {
  SLUICE_CHECK(index_.find(request.id) == kEnd, "request ids are unique among those waiting");
  const std::uint32_t lowest = static_cast<std::uint32_t>(levels_.size() - 1);
  const std::uint32_t number = std::min(request.priority, lowest);
  Level& level = levels_[number];
  const Slot slot = take_slot();
  nodes_[slot] = Node{.id = request.id, .rows = request.rows, .shape_key = request.shape_key, .enqueued = now,
                      .deadline = request.deadline, .previous = level.tail, .level = number};
  if (level.tail == kEnd) {
    level.head = slot;
  } else {
    nodes_[level.tail].next = slot;
  }
  level.tail = slot;
  index_.insert(request.id, slot);
  if (request.deadline != kNever) heap_push(slot);
  ++size_;
  rows_ += request.rows;
}

void WaitQueue::remove(Slot slot) {
  Node& node = nodes_[slot];
  Level& level = levels_[node.level];
  (node.previous == kEnd ? level.head : nodes_[node.previous].next) = node.next;
  (node.next == kEnd ? level.tail : nodes_[node.next].previous) = node.previous;
  if (node.heap_place != kNoPlace) heap_remove(node.heap_place);
  index_.erase(node.id);
  --size_;
  rows_ -= node.rows;
  node.next = free_;
  free_ = slot;
}

Time WaitQueue::oldest() const {
  Time oldest = kNever;
  for (const Level& level : levels_) {
    if (level.head != kEnd) oldest = std::min(oldest, nodes_[level.head].enqueued);
  }
  return oldest;
}

void WaitQueue::heap_push(Slot slot) {
  heap_.push_back(slot);
  sift_up(static_cast<std::uint32_t>(heap_.size() - 1), slot);
}

void WaitQueue::heap_remove(std::uint32_t place) {
  nodes_[heap_[place]].heap_place = kNoPlace;
  const Slot last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  // The last one takes the place; it may belong above or below.
  if (place > 0 && nodes_[last].deadline < nodes_[heap_[(place - 1) / 2]].deadline) {
    sift_up(place, last);
  } else {
    sift_down(place, last);
  }
}

void WaitQueue::sift_up(std::uint32_t place, Slot slot) {
  const Time deadline = nodes_[slot].deadline;
  while (place > 0) {
    const std::uint32_t parent = (place - 1) / 2;
    if (nodes_[heap_[parent]].deadline <= deadline) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, slot);
}

void WaitQueue::sift_down(std::uint32_t place, Slot slot) {
  const Time deadline = nodes_[slot].deadline;
  for (;;) {
    std::size_t child = std::size_t{place} * 2 + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && nodes_[heap_[child + 1]].deadline < nodes_[heap_[child]].deadline) ++child;
    if (nodes_[heap_[child]].deadline >= deadline) break;
    put(place, heap_[child]);
    place = static_cast<std::uint32_t>(child);
  }
  put(place, slot);
}

}  // namespace sluice::serving
