// Bytes that wait for the socket: small ones copied together into blocks, large ones referred to where they
// lie (an engine's output), in the order in which they were appended.
//
//   parts:  [ block 1 ....... ][ tensor ][ block 1 .. ][ tensor ][ block 2 ... ]
//
// Blocks come from a pool that a loop's connections share, and go back when their last byte has been written:
// a connection with nothing to send holds none.
// Thread: its loop's. Limits: the producers ask size(); the pool keeps at most kMaxIdleBlocks.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "io/stream.h"
#include "tensor/tensor.h"

namespace sluice::net {

inline constexpr std::size_t kBlockBytes = 16 * 1024;
// Up to here copying costs less than a part of its own in the write.
inline constexpr std::size_t kInlineBytes = 2048;

struct OutputBlock {
  std::array<std::byte, kBlockBytes> bytes;
};

class BlockPool {
 public:
  std::unique_ptr<OutputBlock> take();
  void give(std::unique_ptr<OutputBlock> block);

 private:
  static constexpr std::size_t kMaxIdleBlocks = 256;
  std::vector<std::unique_ptr<OutputBlock>> idle_;
};

class OutputQueue {
 public:
  explicit OutputQueue(BlockPool& pool) : pool_(pool) {}
  ~OutputQueue() { clear(); }
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  void append(Bytes bytes);  // copies
  void append(std::string_view text) { append(as_bytes(text)); }
  // Refers, when it is worth it; the owner may be empty for memory that outlives the process's connections.
  void append(Bytes bytes, const BufferRef& owner);
  void append(Slice slice);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t parts() const { return parts_.size() - first_; }

  // The first parts, as many as `into` has room for; returns how many.
  std::size_t gather(std::span<Bytes> into) const;
  void consume(std::size_t bytes);
  void clear();

 private:
  struct Part {
    Bytes bytes;
    BufferRef owner;
    std::unique_ptr<OutputBlock> retired;  // a full block whose last bytes are in this part or before it
  };
  std::size_t room() const { return block_ ? kBlockBytes - used_ : 0; }
  void next_block();
  void pop_front();

  BlockPool& pool_;
  std::vector<Part> parts_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<OutputBlock> block_;  // being filled
  std::size_t used_ = 0;
};

// Makes text of its own into shared memory, so that pieces of it can be referred to.
void share(Slice& slice);

}  // namespace sluice::net
