// One model file, opened as a session of the runtime, and what it says of itself. Immutable; a session runs any
// number of batches at once on one set of weights. Private to engine/onnx.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/onnx/ort_runtime.h"
#include "model/model_config.h"

namespace sluice::engine {

enum class SessionUse {
  kInspect,        // the signature only: nothing is optimised or packed
  kOwnThread,      // each run on its caller's thread
  kSharedThreads,  // each run over the runtime's shared pool, the caller's thread included
};

class Session {
 public:
  // Reads the file through a mapping that ends with the call. kInvalidArgument names the file and the reason.
  static Result<std::shared_ptr<Session>> open(std::shared_ptr<OrtRuntime> runtime, const std::string& path,
                                               SessionUse use);
  ~Session();

  const ModelSignature& signature() const { return signature_; }
  const OrtRuntime& runtime() const { return *runtime_; }
  OrtSession* get() const { return session_.get(); }
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  Session(std::shared_ptr<OrtRuntime> runtime, OrtSession* session);
  Status read_signature(const std::string& path);

  const std::shared_ptr<OrtRuntime> runtime_;
  OrtPtr<OrtSession> session_;
  ModelSignature signature_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace sluice::engine
