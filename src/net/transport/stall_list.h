// Who has waited longest: nodes in the order of their last progress, so that one timer and O(1) work watch any
// number of streams that share a time-out. Intrusive: a node unlinks itself when it is destroyed.
#pragma once

#include "base/time.h"

namespace sluice::net {

template <class Owner>
class StallList {
 public:
  class Node {
   public:
    explicit Node(Owner& owner) : owner_(&owner) {}
    ~Node() { unlink(); }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    bool linked() const { return next_ != nullptr; }
    void unlink() {
      if (!linked()) return;
      previous_->next_ = next_;
      next_->previous_ = previous_;
      next_ = previous_ = nullptr;
    }

   private:
    friend class StallList;
    Node() = default;
    Owner* owner_ = nullptr;
    Node* previous_ = nullptr;
    Node* next_ = nullptr;
    Time since_{};
  };

  StallList() { head_.next_ = head_.previous_ = &head_; }
  ~StallList() {
    while (oldest()) head_.next_->unlink();
    head_.next_ = nullptr;
  }
  StallList(const StallList&) = delete;
  StallList& operator=(const StallList&) = delete;

  // Progress: to the back, now.
  void touch(Node& node, Time now) {
    node.unlink();
    node.since_ = now;
    node.previous_ = head_.previous_;
    node.next_ = &head_;
    node.previous_->next_ = &node;
    head_.previous_ = &node;
  }

  Owner* oldest() const { return head_.next_ == &head_ ? nullptr : head_.next_->owner_; }
  // When the oldest will have waited for `timeout`; kNever when there is none.
  Time deadline(Duration timeout) const {
    return head_.next_ == &head_ ? kNever : saturating_add(head_.next_->since_, timeout);
  }

 private:
  mutable Node head_;
};

}  // namespace sluice::net
