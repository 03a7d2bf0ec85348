// A model's configuration: what config.pbtxt says (Triton's model_config.proto, text format), as a struct.
// Read by wire/config/pbtxt.h, completed here from the model's own signature. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/infer.h"

namespace sluice {

struct ModelTensorConfig {
  std::string name;
  DataType datatype = DataType::kInvalid;
  Shape dims;                       // without the batch dimension
  std::optional<Shape> reshape;     // the model's own shape, when it differs
  bool optional = false;            // inputs
  std::string label_filename;       // outputs
};

struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific } kind = Kind::kLatest;
  std::uint32_t num_versions = 1;
  std::vector<std::int64_t> versions;
};

// Names and meanings as in Triton's ModelQueuePolicy and ModelDynamicBatching.
struct QueuePolicy {
  enum class TimeoutAction { kReject, kDelay } timeout_action = TimeoutAction::kReject;
  std::uint64_t default_timeout_us = 0;  // 0 = none
  bool allow_timeout_override = false;
  std::uint32_t max_queue_size = 0;      // 0 = Sluice's default (kDefaultMaxQueueSize), never unbounded
};
inline constexpr std::uint32_t kDefaultMaxQueueSize = 4096;

struct DynamicBatching {
  std::vector<std::int32_t> preferred_batch_size;
  std::uint64_t max_queue_delay_us = 0;
  bool preserve_ordering = false;
  std::uint64_t priority_levels = 0;
  std::uint64_t default_priority_level = 0;
  QueuePolicy default_queue_policy;
  std::map<std::uint64_t, QueuePolicy> priority_queue_policy;
};

struct WarmupInput {
  DataType datatype = DataType::kInvalid;
  Shape dims;
  enum class Source { kZero, kRandom, kFile } source = Source::kZero;
  std::string file;
};
struct Warmup {
  std::string name;
  std::uint32_t batch_size = 0;
  std::uint32_t count = 1;
  std::map<std::string, WarmupInput> inputs;
};

struct ModelConfig {
  std::string name;
  std::string platform;   // "onnxruntime_onnx"
  std::string backend;    // "onnxruntime", "identity"
  VersionPolicy version_policy;
  std::int32_t max_batch_size = 0;  // 0 = the model has no batch dimension
  bool max_batch_size_given = false;
  std::vector<ModelTensorConfig> inputs;
  std::vector<ModelTensorConfig> outputs;
  std::uint32_t instance_count = 1;
  bool instances_given = false;
  std::string default_model_filename;
  std::optional<DynamicBatching> dynamic_batching;
  std::map<std::string, std::string> parameters;
  std::vector<Warmup> warmup;
  bool decoupled = false;
  std::vector<std::string> warnings;  // one line each, naming the field

  // Sluice's own, from parameters: "sluice.inline" = "true" (declared cheap: runs on the io loop).
  bool run_inline = false;
};

// What the model itself says of its inputs and outputs, with the batch dimension.
struct ModelSignature {
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
};
// Completes what is missing from the signature and checks the rest against it: max_batch_size (first
// dimension variable in every input and output -> kAutoMaxBatchSize when absent), inputs, outputs,
// dynamic_batching when batching is possible and nothing is said. kInvalidArgument names tensor, expected, given.
inline constexpr std::int32_t kAutoMaxBatchSize = 32;
Result<ModelConfig> complete_model_config(ModelConfig config, const ModelSignature& signature);

// Full shapes (with the batch dimension) for the protocol.
ModelMetadata model_metadata(const ModelConfig& config, std::vector<std::string> versions);

}  // namespace sluice
