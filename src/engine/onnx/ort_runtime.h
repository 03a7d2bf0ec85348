// ONNX Runtime itself: the opened library and the process's one environment, with the threads and the memory that
// all sessions share. Private to engine/onnx.
//
// Owner: the engine, its sessions and the outputs that are still held, by shared_ptr. Thread: any.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "engine/onnx/onnx_engine.h"
#include "engine/onnx/ort_memory.h"

namespace sluice::engine {

// Objects of the runtime, released by the function of its table that belongs to them.
template <class T>
using OrtPtr = std::unique_ptr<T, void (*)(T*)>;

// Opens the library (onnx_engine.h says where). It is never closed.
Result<const OrtApiBase*> open_ort_library(const std::string& given);

class OrtRuntime {
 public:
  static Result<std::shared_ptr<OrtRuntime>> start(const OnnxOptions& options, int threads);

  const OrtApi& api() const { return *api_; }
  const OrtEnv* env() const { return env_.get(); }
  OrtMemory& memory() { return *memory_; }
  const OrtMemoryInfo* memory_info() const { return memory_->info(); }
  const std::string& version() const { return version_; }

  // Takes the status: nothing when it is null, otherwise `what` and the runtime's words.
  // `refused` is the code for what the runtime calls an invalid argument, `failed` for everything else.
  Status check(OrtStatus* status, std::string_view what, Code refused = Code::kInternal,
               Code failed = Code::kInternal) const;

 private:
  OrtRuntime(const OrtApiBase& base, const OrtApi& api, const OnnxOptions& options);
  Status create_env(int threads);

  const OrtApi* api_;
  std::string version_;
  const Log* log_;
  std::unique_ptr<OrtMemory> memory_;  // before env_: the environment frees into it
  OrtPtr<OrtEnv> env_;
};

}  // namespace sluice::engine
