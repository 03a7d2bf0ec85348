#include "engine/onnx/ort_memory.h"

#include <cstdlib>
#include <new>

namespace sluice::engine {
namespace {

constexpr std::uint32_t kAllocatorVersion = 18;  // the first with Reserve

// Stands before each block that the runtime holds; `owner` is empty for weights.
struct alignas(kTensorAlignment) Head {
  BufferRef owner;
  std::size_t size = 0;
};
static_assert(sizeof(Head) == kTensorAlignment);

thread_local OrtMemory::RunScope* current_scope = nullptr;

}  // namespace

OrtMemory::RunScope::RunScope() { current_scope = this; }
OrtMemory::RunScope::~RunScope() { current_scope = nullptr; }

OrtMemory::OrtMemory(const Arena::Options& options) : arena_(options) {
  callbacks_.memory = this;
  callbacks_.version = kAllocatorVersion;
  callbacks_.Alloc = [](OrtAllocator* self, std::size_t size) {
    return static_cast<Callbacks*>(self)->memory->allocate(size);
  };
  callbacks_.Free = [](OrtAllocator*, void* data) { release(data); };
  callbacks_.Info = [](const OrtAllocator* self) { return static_cast<const Callbacks*>(self)->memory->info(); };
  callbacks_.Reserve = [](OrtAllocator*, std::size_t size) { return reserve(size); };
}

Status OrtMemory::describe(const OrtApi& api) {
  OrtMemoryInfo* info = nullptr;
  if (OrtStatus* status = api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info)) {
    const Error error{Code::kInternal, api.GetErrorMessage(status)};
    api.ReleaseStatus(status);
    return fail(error);
  }
  info_ = {info, api.ReleaseMemoryInfo};
  return {};
}

void* OrtMemory::allocate(std::size_t size) {
  auto block = arena_.allocate(size + sizeof(Head));
  if (!block) {
    if (current_scope) current_scope->refusal_ = block.error();
    // The runtime would write to a null; what its own arenas throw it turns into a status.
    throw std::bad_alloc();
  }
  if (current_scope) {
    current_scope->live_ += size;
    current_scope->peak_ = std::max(current_scope->peak_, current_scope->live_);
  }
  std::byte* at = block->data();
  return new (at) Head{*std::move(block), size} + 1;
}

void* OrtMemory::reserve(std::size_t size) {
  const std::size_t rounded = (size + sizeof(Head) + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  void* at = rounded > size ? std::aligned_alloc(kTensorAlignment, rounded) : nullptr;
  if (!at) throw std::bad_alloc();
  return new (at) Head{{}, 0} + 1;
}

void OrtMemory::release(void* data) {
  if (!data) return;
  Head* head = static_cast<Head*>(data) - 1;
  if (!head->owner) {
    head->~Head();
    std::free(head);
    return;
  }
  // Blocks may be freed by another thread or after the run; then there is nothing to count.
  if (current_scope && current_scope->live_ >= head->size) current_scope->live_ -= head->size;
  const BufferRef last = std::move(head->owner);  // gives the block back, and the head with it
}

}  // namespace sluice::engine
