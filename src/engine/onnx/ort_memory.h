// The runtime's memory, as the allocator that ONNX Runtime calls.
//
//   Alloc    during a run: scratch and outputs   a block of a bounded, pooled arena   [ head, 64 B | data ]
//   Reserve  while loading: weights              malloc, given back at unload         [ head, 64 B | data ]
//
// What one run took is counted on its thread (RunScope), as is whether the arena refused: the runtime turns a
// refusal into an error without a reason. Thread: any.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>
#include <optional>

#include "base/error.h"
#include "tensor/buffer.h"

namespace sluice::engine {

class OrtMemory {
 public:
  explicit OrtMemory(const Arena::Options& options);
  OrtMemory(const OrtMemory&) = delete;
  OrtMemory& operator=(const OrtMemory&) = delete;

  // Creates what the runtime wants to know about the allocator; once, before allocator() is registered.
  Status describe(const OrtApi& api);
  OrtAllocator* allocator() { return &callbacks_; }
  const OrtMemoryInfo* info() const { return info_.get(); }
  Arena::Usage usage() const { return arena_.usage(); }

  // Counts what the calling thread allocates while it lives. Scopes do not nest.
  class RunScope {
   public:
    RunScope();
    ~RunScope();
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;
    std::size_t peak_bytes() const { return peak_; }
    const std::optional<Error>& refusal() const { return refusal_; }

   private:
    friend class OrtMemory;
    std::size_t live_ = 0;
    std::size_t peak_ = 0;
    std::optional<Error> refusal_;
  };

 private:
  struct Callbacks : OrtAllocator {
    OrtMemory* memory = nullptr;
  };
  void* allocate(std::size_t size);
  static void* reserve(std::size_t size);
  static void release(void* data);

  Arena arena_;
  Callbacks callbacks_;
  std::unique_ptr<OrtMemoryInfo, void (*)(OrtMemoryInfo*)> info_{nullptr, nullptr};
};

}  // namespace sluice::engine
