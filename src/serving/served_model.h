// A model version that can answer: the loaded model, its completed configuration, its queue and statistics.
// Immutable but for the queue inside; handed out by shared_ptr, so that a version stays alive while requests
// use it. Made by the lifecycle (loaded, warmed), or directly by tests and the simulator.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "engine/batch_model.h"
#include "serving/model_queue.h"
#include "stats/model_stats.h"
#include "model/model_config.h"
#include "model/infer.h"

namespace sluice::serving {

class ServedModel {
 public:
  ServedModel(ModelConfig config, std::string version, std::shared_ptr<engine::BatchModel> model,
              io::Loop& timer_loop);
  ~ServedModel();

  const ModelConfig& config() const { return config_; }
  const std::string& version() const { return version_; }
  const ModelMetadata& metadata() const { return metadata_; }  // versions: this one only
  const std::shared_ptr<ModelStats>& stats() const { return stats_; }
  ModelQueue& queue() { return *queue_; }

  // Checks names, datatypes, shapes, the batch dimension and the outputs asked for against the signature:
  // kInvalidArgument naming input, expected and given. Consumes the request's tensors.
  Result<PreparedRequest> prepare(InferRequest&& request, Time received, Time now) const;

 private:
  ModelConfig config_;
  std::string version_;
  ModelMetadata metadata_;
  std::shared_ptr<ModelStats> stats_;
  std::unique_ptr<ModelQueue> queue_;
};

}  // namespace sluice::serving
