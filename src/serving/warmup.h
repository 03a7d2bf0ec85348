// A model's first runs, before its first request: they build what the engine builds lazily, and show a model that
// cannot run at all. Blocking: on the loader. Configurations are complete (complete_model_config has checked names,
// datatypes, shapes and batch sizes).
#pragma once

#include <atomic>
#include <string>

#include "base/error.h"
#include "engine/batch_model.h"
#include "model/model_config.h"

namespace sluice::serving {

inline constexpr std::size_t kMaxWarmupBytes = std::size_t{256} << 20;  // of one input
inline constexpr std::uint32_t kMaxWarmupCount = 1000;                  // runs of one model_warmup entry

// Every entry of the configuration's model_warmup, `count` times each. Files lie in DIRECTORY/warmup. The error names
// the entry; the model must then not be served. Ends between two runs, kUnavailable, once `stop` is true.
Status run_configured_warmup(engine::BatchModel& model, const ModelConfig& config, const std::string& directory,
                             const std::atomic<bool>& stop);

// One row of zeros in the smallest shape that the configuration allows (variable dimensions are 1). An error says
// nothing against the model: it may need a larger shape.
Status run_implied_warmup(engine::BatchModel& model, const ModelConfig& config);

}  // namespace sluice::serving
