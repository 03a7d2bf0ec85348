// A loaded ONNX model behind the seam of batches. Private to engine/onnx.
#pragma once

#include <memory>

#include "engine/engine.h"
#include "engine/onnx/ort_session.h"

namespace sluice::engine {

// `config` is complete and the session belongs to its file; `weights_bytes` is what loading it took.
std::shared_ptr<BatchModel> make_onnx_model(const EngineContext& context, std::shared_ptr<Session> session,
                                            const ModelConfig& config, std::uint64_t weights_bytes);

}  // namespace sluice::engine
