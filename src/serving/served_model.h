// A model version that can answer: the loaded model, its completed configuration, its queue and statistics.
// Immutable but for the queue inside; handed out by shared_ptr, so that a version stays alive while requests
// use it. Made by the lifecycle (loaded, warmed), or directly by tests and the simulator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/batch_model.h"
#include "model/infer.h"
#include "model/model_config.h"
#include "serving/model_queue.h"
#include "serving/rows/reshape.h"
#include "stats/model_stats.h"

namespace sluice::serving {

// Levels beyond this one share the lowest.
inline constexpr std::uint32_t kMaxPriorityLevels = 64;

class ServedModel {
 public:
  // `config` is complete: its inputs and outputs are in the model's order.
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
  //
  // The time in the queue is bounded as Triton does: by the default timeout of the request's priority level; a
  // request's own timeout may only shorten it, and only where the policy allows that. A policy of DELAY bounds
  // nothing: its requests wait. A priority of 0 or beyond the levels is the default one.
  Result<PreparedRequest> prepare(InferRequest&& request, Time received, Time now) const;

 private:
  struct InputRule {
    Reshape reshape;
    bool optional = false;
  };

  Status check_supported(const InferRequest& request) const;
  Status place_input(InputTensor&& given, std::size_t hint, std::vector<Tensor>& inputs) const;
  Status check_input(std::size_t index, Tensor& tensor) const;
  Status count_rows(const std::vector<Tensor>& inputs, std::int64_t& rows) const;
  Status choose_outputs(const std::vector<RequestedOutput>& asked, std::vector<std::uint32_t>& chosen) const;
  std::uint64_t shape_key(const std::vector<Tensor>& inputs) const;
  std::uint64_t priority_level(std::uint64_t priority) const;  // 1-based; 0: the model has no levels
  Time queue_deadline(std::uint64_t level, std::uint64_t timeout_us, Time now) const;

  ModelConfig config_;
  std::string version_;
  ModelMetadata metadata_;
  std::vector<InputRule> rules_;  // by input
  std::shared_ptr<ModelStats> stats_;
  std::unique_ptr<ModelQueue> queue_;
};

}  // namespace sluice::serving
