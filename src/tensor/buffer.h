// Buffers: memory for tensors, from arenas that pool it.
//
//   block:  [ header, 64 B | data, aligned to 64 bytes, size rounded up to a class ]
//
// A BufferRef is a counted reference to a block; the last one gives the block back to its arena, from
// any thread. Bytes are shared by those who hold a reference and written only by the one who filled it,
// before it is handed on. Host arenas take their memory by memfd slabs, so that a slab can be shared
// with another process later; small classes share a slab, a large block has one of its own. Under
// AddressSanitizer the bytes beyond `size` and those of free blocks are poisoned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace sluice {

class Arena;

enum class MemoryKind : std::uint8_t { kHost, kFileBacked, kPinned, kDevice };

inline constexpr std::size_t kTensorAlignment = 64;

struct BufferSlab;

// The head of a block. Private to tensor/; drawn here because BufferRef's copy is on the request path.
struct alignas(64) BufferBlock {
  std::atomic<std::uint32_t> references{1};
  std::uint32_t size_class = 0;
  std::size_t size = 0;      // what was asked for
  std::byte* data = nullptr;
  Arena* arena = nullptr;    // null: memory of somebody else, `release` is called at the end
  void (*release)(void* context) = nullptr;
  void* context = nullptr;
  BufferSlab* slab = nullptr;        // of an arena: what the block was carved from
  BufferBlock* next_free = nullptr;  // while it is free
};
static_assert(sizeof(BufferBlock) == kTensorAlignment);

class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(BufferBlock* adopted) : block_(adopted) {}
  BufferRef(const BufferRef& other) : block_(other.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BufferRef() {
    if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back(block_);
  }

  explicit operator bool() const { return block_ != nullptr; }
  std::size_t size() const { return block_ ? block_->size : 0; }
  std::byte* data() { return block_ ? block_->data : nullptr; }
  const std::byte* data() const { return block_ ? block_->data : nullptr; }
  MutableBytes mutable_bytes() { return {data(), size()}; }
  Bytes bytes() const { return {data(), size()}; }
  MemoryKind kind() const;

 private:
  static void give_back(BufferBlock* block);
  BufferBlock* block_ = nullptr;
};

// Wraps memory of somebody else (an engine's output); `release(context)` runs once at the end, on
// whatever thread drops the last reference.
BufferRef wrap_foreign(std::byte* data, std::size_t size, void (*release)(void*), void* context);

class Arena {
 public:
  struct Options {
    std::string name = "host";
    MemoryKind kind = MemoryKind::kHost;
    std::size_t max_bytes = std::size_t{4} << 30;   // in use at once; beyond: kResourceExhausted
    std::size_t max_idle_bytes = std::size_t{256} << 20;  // kept for reuse; more goes back to the system
  };
  struct Usage {
    std::size_t in_use_bytes = 0;  // blocks handed out, rounded to their classes
    std::size_t idle_bytes = 0;    // used before and free now; parts of a slab that is in use may exceed the limit
    std::size_t blocks = 0;        // handed out and not yet back
  };

  explicit Arena(Options options);
  // Every block must be back (checked).
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Any thread. Uninitialised. kResourceExhausted names the size, what is in use and the limit.
  // size 0 gives a valid reference of size 0.
  Result<BufferRef> allocate(std::size_t size);
  Usage usage() const;
  const Options& options() const;

 private:
  friend class BufferRef;
  void take_back(BufferBlock* block);
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
