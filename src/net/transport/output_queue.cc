#include "net/transport/output_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::net {

std::unique_ptr<OutputBlock> BlockPool::take() {
  if (idle_.empty()) return std::make_unique_for_overwrite<OutputBlock>();
  std::unique_ptr<OutputBlock> block = std::move(idle_.back());
  idle_.pop_back();
  return block;
}

void BlockPool::give(std::unique_ptr<OutputBlock> block) {
  if (idle_.size() < kMaxIdleBlocks) idle_.push_back(std::move(block));
}

void OutputQueue::append(Bytes bytes) {
  while (!bytes.empty()) {
    if (room() == 0) next_block();
    const std::size_t n = std::min(bytes.size(), room());
    std::byte* at = block_->bytes.data() + used_;
    std::memcpy(at, bytes.data(), n);
    Part* last = parts() > 0 ? &parts_.back() : nullptr;
    if (last && used_ > 0 && last->bytes.data() + last->bytes.size() == at) {
      last->bytes = {last->bytes.data(), last->bytes.size() + n};
    } else {
      parts_.push_back({{at, n}, {}, nullptr});
    }
    used_ += n;
    size_ += n;
    bytes = bytes.subspan(n);
  }
}

void OutputQueue::append(Bytes bytes, const BufferRef& owner) {
  if (bytes.size() <= kInlineBytes) return append(bytes);
  parts_.push_back({bytes, owner, nullptr});
  size_ += bytes.size();
}

void OutputQueue::append(Slice slice) {
  if (slice.size() <= kInlineBytes) return append(slice.view());
  share(slice);
  append(slice.bytes, slice.owner);
}

// A full block is handed to the part that is last now: all of its bytes are in that part or in earlier ones.
void OutputQueue::next_block() {
  if (block_ && parts() > 0) parts_.back().retired = std::move(block_);
  if (!block_) block_ = pool_.take();
  used_ = 0;
}

std::size_t OutputQueue::gather(std::span<Bytes> into) const {
  const std::size_t n = std::min(into.size(), parts());
  for (std::size_t i = 0; i < n; ++i) into[i] = parts_[first_ + i].bytes;
  return n;
}

void OutputQueue::pop_front() {
  Part& part = parts_[first_++];
  part.owner = BufferRef();
  if (part.retired) pool_.give(std::move(part.retired));
}

void OutputQueue::consume(std::size_t bytes) {
  size_ -= bytes;
  while (bytes > 0) {
    Part& part = parts_[first_];
    if (bytes < part.bytes.size()) {
      part.bytes = part.bytes.subspan(bytes);
      break;
    }
    bytes -= part.bytes.size();
    pop_front();
  }
  if (size_ == 0) return clear();
  constexpr std::size_t kCompactAfter = 256;
  if (first_ >= kCompactAfter && first_ * 2 >= parts_.size()) {
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void OutputQueue::clear() {
  while (first_ < parts_.size()) pop_front();
  parts_.clear();
  constexpr std::size_t kKeepParts = 1024;
  if (parts_.capacity() > kKeepParts) parts_.shrink_to_fit();
  first_ = 0;
  size_ = 0;
  if (block_) pool_.give(std::move(block_));
  used_ = 0;
}

void share(Slice& slice) {
  if (slice.external) return;
  auto* text = new std::string(std::move(slice.text));
  slice.bytes = as_bytes(*text);
  auto* data = reinterpret_cast<std::byte*>(text->data());
  slice.owner = wrap_foreign(data, text->size(), [](void* held) { delete static_cast<std::string*>(held); }, text);
  slice.external = true;
}

}  // namespace sluice::net
