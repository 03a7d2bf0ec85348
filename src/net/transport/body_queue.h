// A body that waits to be framed: slices in order, of which any prefix can be moved to an OutputQueue.
#pragma once

#include <cstddef>
#include <vector>

#include "net/transport/output_queue.h"
#include "tensor/tensor.h"

namespace sluice::net {

class BodyQueue {
 public:
  void push(Payload payload);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // bytes <= size()
  void move_to(OutputQueue& out, std::size_t bytes);
  void clear();

 private:
  Payload slices_;
  std::size_t first_ = 0;   // the slice at the front
  std::size_t offset_ = 0;  // bytes of it that have gone
  std::size_t size_ = 0;
};

}  // namespace sluice::net
