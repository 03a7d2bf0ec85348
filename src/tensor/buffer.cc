#include "tensor/buffer.h"

#include <fmt/format.h>

#include <array>
#include <list>
#include <mutex>
#include <new>

#include "base/check.h"
#include "io/files.h"
#include "tensor/poison.h"
#include "tensor/size_class.h"

namespace sluice {
namespace {

// Blocks up to kMaxSharedBlock are carved from slabs of kSlabBytes: few descriptors, few mappings.
constexpr std::size_t kSlabBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxSharedBlock = std::size_t{512} << 10;

constexpr std::size_t block_stride(std::size_t size_class) {
  return sizeof(BufferBlock) + size_of_class(size_class);
}

}  // namespace

// A mapping and the blocks carved from it, of one class. Pages are touched when a block is carved, once.
struct BufferSlab {
  io::SharedMapping mapping;
  std::size_t capacity = 0;
  std::size_t carved = 0;  // blocks that were handed out at least once: the first ones
  std::size_t used = 0;
  BufferBlock* free = nullptr;
  std::list<BufferSlab>::iterator self;

  bool full() const { return used == capacity; }
};

// Locks: one mutex a class, never two at once; the totals are atomics, so that allocate() touches one
// shared word beside its class. A slab is in `full` when every block is handed out, else in `available`:
// taken from the front, and an empty one (used == 0) that shares its mapping goes to the back, so that
// it can drain and be released.
class Arena::State {
 public:
  explicit State(Options options) : options_(std::move(options)) {}
  ~State();

  const Options& options() const { return options_; }
  Result<BufferBlock*> allocate(std::size_t size, Arena* arena);
  void take_back(BufferBlock* block);
  Usage usage() const;

 private:
  struct alignas(128) SizeClass {
    mutable std::mutex mutex;
    std::list<BufferSlab> available;
    std::list<BufferSlab> full;
    std::size_t used = 0;
  };

  bool reserve(std::size_t bytes);
  Status add_slab(SizeClass& of, std::size_t size_class);
  BufferBlock* take_block(SizeClass& of, std::size_t size_class, Arena* arena);
  std::size_t idle_bytes() const;
  void trim();
  void release_empty(SizeClass& of, std::size_t size_class, std::list<BufferSlab>& released);
  static void unmap(std::list<BufferSlab>& slabs);

  const Options options_;
  std::atomic<std::size_t> in_use_bytes_{0};
  std::atomic<std::size_t> carved_bytes_{0};  // handed out at least once and not unmapped
  std::atomic<std::size_t> empty_slabs_{0};   // could be unmapped at once
  std::array<SizeClass, kSizeClassCount> classes_;
};

Arena::State::~State() {
  SLUICE_CHECK(usage().blocks == 0, fmt::format("arena '{}' ends while {} blocks of {} B are referenced",
                                                options_.name, usage().blocks, usage().in_use_bytes));
  for (SizeClass& of : classes_) unmap(of.available);
}

// Counts the bytes in, unless that would pass the limit.
bool Arena::State::reserve(std::size_t bytes) {
  std::size_t now = in_use_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > options_.max_bytes || now > options_.max_bytes - bytes) return false;
  } while (!in_use_bytes_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

Result<BufferBlock*> Arena::State::allocate(std::size_t size, Arena* arena) {
  if (size > kMaxClassBytes || !reserve(size_of_class(class_of_size(size)))) {
    // What fits once others have gone is worth another try; what never fits is not.
    const bool fits_empty = size <= kMaxClassBytes && size_of_class(class_of_size(size)) <= options_.max_bytes;
    Error error{Code::kResourceExhausted,
                fmt::format("arena '{}' has no room for a buffer of {} B: {} B of at most {} B are in use",
                            options_.name, size, in_use_bytes_.load(std::memory_order_relaxed), options_.max_bytes)};
    error.retry_after_s = fits_empty ? 1 : 0;
    return fail(std::move(error));
  }
  const std::size_t size_class = class_of_size(size);
  SizeClass& of = classes_[size_class];
  BufferBlock* block = nullptr;
  {
    const std::lock_guard lock(of.mutex);
    if (of.available.empty()) {
      if (Status added = add_slab(of, size_class); !added) {
        in_use_bytes_.fetch_sub(size_of_class(size_class), std::memory_order_relaxed);
        return fail(added.error());
      }
    }
    block = take_block(of, size_class, arena);
  }
  unpoison_memory(block->data, size);
  block->size = size;
  block->references.store(1, std::memory_order_relaxed);
  return block;
}

Status Arena::State::add_slab(SizeClass& of, std::size_t size_class) {
  const std::size_t stride = block_stride(size_class);
  const bool shared = size_of_class(size_class) <= kMaxSharedBlock;
  auto mapping = io::map_shared_memory("sluice-" + options_.name, shared ? kSlabBytes : stride);
  if (!mapping) return fail(mapping.error());
  BufferSlab& slab = of.available.emplace_front();
  slab.mapping = *mapping;
  slab.capacity = shared ? kSlabBytes / stride : 1;
  slab.self = of.available.begin();
  empty_slabs_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

BufferBlock* Arena::State::take_block(SizeClass& of, std::size_t size_class, Arena* arena) {
  BufferSlab& slab = of.available.front();
  BufferBlock* block = slab.free;
  if (block) {
    slab.free = block->next_free;
  } else {
    std::byte* at = slab.mapping.address + slab.carved * block_stride(size_class);
    block = new (at) BufferBlock;
    block->size_class = static_cast<std::uint32_t>(size_class);
    block->data = at + sizeof(BufferBlock);
    block->arena = arena;
    block->slab = &slab;
    ++slab.carved;
    poison_memory(block->data, size_of_class(size_class));
    carved_bytes_.fetch_add(size_of_class(size_class), std::memory_order_relaxed);
  }
  if (slab.used++ == 0) empty_slabs_.fetch_sub(1, std::memory_order_relaxed);
  ++of.used;
  if (slab.full()) of.full.splice(of.full.begin(), of.available, slab.self);
  return block;
}

void Arena::State::take_back(BufferBlock* block) {
  const std::size_t size_class = block->size_class;
  SizeClass& of = classes_[size_class];
  poison_memory(block->data, size_of_class(size_class));
  {
    const std::lock_guard lock(of.mutex);
    BufferSlab& slab = *block->slab;
    if (slab.full()) of.available.splice(of.available.begin(), of.full, slab.self);
    block->next_free = slab.free;
    slab.free = block;
    --of.used;
    if (--slab.used == 0) {
      empty_slabs_.fetch_add(1, std::memory_order_relaxed);
      if (slab.capacity > 1) of.available.splice(of.available.end(), of.available, slab.self);
    }
  }
  in_use_bytes_.fetch_sub(size_of_class(size_class), std::memory_order_relaxed);
  if (idle_bytes() > options_.max_idle_bytes && empty_slabs_.load(std::memory_order_relaxed) > 0) trim();
}

// The two totals move one after the other: a block that is counted in use before it is carved must not
// look like a negative number of idle bytes.
std::size_t Arena::State::idle_bytes() const {
  const std::size_t used = in_use_bytes_.load(std::memory_order_relaxed);
  const std::size_t carved = carved_bytes_.load(std::memory_order_relaxed);
  return carved > used ? carved - used : 0;
}

// Unmaps empty slabs, of the largest classes first, until what is idle is within the limit.
void Arena::State::trim() {
  std::list<BufferSlab> released;
  for (std::size_t size_class = kSizeClassCount; size_class-- > 0 && idle_bytes() > options_.max_idle_bytes;) {
    SizeClass& of = classes_[size_class];
    const std::lock_guard lock(of.mutex);
    release_empty(of, size_class, released);
  }
  unmap(released);  // after the locks: the kernel takes its time over large mappings
}

void Arena::State::release_empty(SizeClass& of, std::size_t size_class, std::list<BufferSlab>& released) {
  while (!of.available.empty() && of.available.back().used == 0 && idle_bytes() > options_.max_idle_bytes) {
    BufferSlab& slab = of.available.back();
    carved_bytes_.fetch_sub(slab.carved * size_of_class(size_class), std::memory_order_relaxed);
    empty_slabs_.fetch_sub(1, std::memory_order_relaxed);
    released.splice(released.end(), of.available, slab.self);
  }
}

void Arena::State::unmap(std::list<BufferSlab>& slabs) {
  for (const BufferSlab& slab : slabs) {
    unpoison_memory(slab.mapping.address, slab.mapping.size);
    io::unmap_shared_memory(slab.mapping);
  }
  slabs.clear();
}

Arena::Usage Arena::State::usage() const {
  Usage usage{.in_use_bytes = in_use_bytes_.load(std::memory_order_relaxed), .idle_bytes = idle_bytes()};
  for (const SizeClass& of : classes_) {
    const std::lock_guard lock(of.mutex);
    usage.blocks += of.used;
  }
  return usage;
}

Arena::Arena(Options options) : state_(std::make_unique<State>(std::move(options))) {
  SLUICE_CHECK(state_->options().kind == MemoryKind::kHost, "only host memory is mapped here");
}
Arena::~Arena() = default;

Result<BufferRef> Arena::allocate(std::size_t size) {
  auto block = state_->allocate(size, this);
  if (!block) return fail(std::move(block.error()));
  return BufferRef(*block);
}

Arena::Usage Arena::usage() const { return state_->usage(); }
const Arena::Options& Arena::options() const { return state_->options(); }
void Arena::take_back(BufferBlock* block) { state_->take_back(block); }

MemoryKind BufferRef::kind() const {
  return block_ && block_->arena ? block_->arena->options().kind : MemoryKind::kHost;
}

void BufferRef::give_back(BufferBlock* block) {
  if (block->arena) {
    block->arena->take_back(block);
    return;
  }
  if (block->release) block->release(block->context);
  delete block;
}

BufferRef wrap_foreign(std::byte* data, std::size_t size, void (*release)(void*), void* context) {
  auto* block = new BufferBlock;
  block->size = size;
  block->data = data;
  block->release = release;
  block->context = context;
  return BufferRef(block);
}

}  // namespace sluice
