#include "net/transport/body_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::net {

void BodyQueue::push(Payload payload) {
  const std::size_t bytes = payload_size(payload);
  if (bytes == 0) return;
  if (size_ == 0) {
    clear();
    slices_ = std::move(payload);
  } else {
    slices_.insert(slices_.end(), std::move_iterator(payload.begin()), std::move_iterator(payload.end()));
  }
  size_ += bytes;
}

void BodyQueue::move_to(OutputQueue& out, std::size_t bytes) {
  size_ -= bytes;
  while (bytes > 0) {
    Slice& slice = slices_[first_];
    const std::size_t left = slice.size() - offset_;
    const std::size_t n = std::min(bytes, left);
    if (n > kInlineBytes) {
      share(slice);
      out.append(slice.bytes.subspan(offset_, n), slice.owner);
    } else {
      out.append(slice.view().subspan(offset_, n));
    }
    bytes -= n;
    offset_ += n;
    if (n < left) break;
    slice = Slice();
    ++first_;
    offset_ = 0;
  }
  if (size_ == 0) return clear();
  constexpr std::size_t kCompactAfter = 64;
  if (first_ >= kCompactAfter && first_ * 2 >= slices_.size()) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void BodyQueue::clear() {
  slices_.clear();
  first_ = offset_ = size_ = 0;
}

}  // namespace sluice::net
