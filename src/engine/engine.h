// A backend: it says what a model file's signature is and loads it. Blocking; called on the loader.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/batch_model.h"
#include "io/compute.h"
#include "io/loop.h"

namespace sluice::engine {

// What engines share; outlives every model.
struct EngineContext {
  io::ComputePool& compute;
  Arena& arena;
  // A clock for the stages' instants (Loop::now is for any thread).
  const io::Loop& clock;
};

struct LoadRequest {
  std::string model_path;     // file or version folder, confined by the repository
  ModelConfig config;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view backend_name() const = 0;   // "onnxruntime"
  virtual std::string version() const = 0;             // of the runtime behind it
  // Reads the signature without keeping anything loaded. kInvalidArgument names the file and the reason.
  virtual Result<ModelSignature> inspect(const LoadRequest& request) = 0;
  // Loads; `config` is complete. The model is warm only after serving's warm-up ran through submit().
  virtual Result<std::shared_ptr<BatchModel>> load(const LoadRequest& request) = 0;
};

}  // namespace sluice::engine
