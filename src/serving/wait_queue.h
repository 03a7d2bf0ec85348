// The requests that wait for a batch: in order, found by id, and by their deadlines. Part of the batcher.
//
//   levels:    [0] a <-> c <-> d      [1] b        order of the queue: a c d b
//   index:     id -> slot             open addressing, linear probing
//   deadlines: binary heap of slots   each node knows its place in it, so that any can be taken out
//
// Nodes live in one vector and are named by their slot; slots are reused.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace sluice::serving {

struct QueuedRequest;

// Slots by request id.
class SlotIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  SlotIndex();
  std::uint32_t find(std::uint64_t id) const;  // kNone when absent
  void insert(std::uint64_t id, std::uint32_t slot);  // id is absent
  void erase(std::uint64_t id);                       // id is present

 private:
  struct Entry {
    std::uint64_t id = 0;
    std::uint32_t slot = kNone;
  };
  std::size_t home(std::uint64_t id) const;
  std::size_t locate(std::uint64_t id) const;  // its entry, or the free one where it would go
  void grow();

  std::vector<Entry> entries_;  // a power of two, at most half full
  std::size_t size_ = 0;
};

class WaitQueue {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kEnd = SlotIndex::kNone;

  struct Node {
    std::uint64_t id = 0;
    std::int64_t rows = 0;
    std::uint64_t shape_key = 0;
    Time enqueued, deadline;
    Slot previous = kEnd, next = kEnd;  // within the level
    std::uint32_t level = 0;
    std::uint32_t heap_place = kNoPlace;
  };

  explicit WaitQueue(std::uint32_t levels);

  void push(const QueuedRequest& request, Time now);
  void remove(Slot slot);
  Slot find(std::uint64_t id) const { return index_.find(id); }

  const Node& operator[](Slot slot) const { return nodes_[slot]; }
  Slot first() const { return head_from(0); }
  Slot after(Slot slot) const {
    const Node& node = nodes_[slot];
    return node.next != kEnd ? node.next : head_from(node.level + 1);
  }
  bool is_last(Slot slot) const { return after(slot) == kEnd; }

  std::size_t size() const { return size_; }
  std::int64_t rows() const { return rows_; }
  Time oldest() const;  // when the one that has waited longest came; kNever when empty
  // The one that expires first; kEnd when none has a deadline.
  Slot next_to_expire() const { return heap_.empty() ? kEnd : heap_.front(); }

 private:
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;
  struct Level {
    Slot head = kEnd, tail = kEnd;
  };

  Slot head_from(std::uint32_t level) const;
  Slot take_slot();
  void heap_push(Slot slot);
  void heap_remove(std::uint32_t place);
  void sift_up(std::uint32_t place, Slot slot);
  void sift_down(std::uint32_t place, Slot slot);
  void put(std::uint32_t place, Slot slot) {
    heap_[place] = slot;
    nodes_[slot].heap_place = place;
  }

  std::vector<Node> nodes_;
  Slot free_ = kEnd;  // list of unused nodes, through `next`
  std::vector<Level> levels_;
  SlotIndex index_;
  std::vector<Slot> heap_;
  std::size_t size_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace sluice::serving
