#include "serving/served_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sluice::serving {
namespace {

std::unexpected<Error> invalid(std::string message) { return fail(Code::kInvalidArgument, std::move(message)); }

std::string names_of(const std::vector<TensorMetadata>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorMetadata& tensor : tensors) names.push_back(tensor.name);
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

// Most clients send tensors in the model's order: the place a tensor came at is looked at first.
std::size_t index_of(const std::vector<TensorMetadata>& tensors, std::string_view name, std::size_t hint) {
  if (hint < tensors.size() && tensors[hint].name == name) return hint;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
  }
  return tensors.size();
}

BatcherOptions batcher_options(const ModelConfig& config) {
  BatcherOptions options;
  options.max_rows = std::max(config.max_batch_size, 1);
  options.instances = config.instance_count;
  options.max_queue_size = kDefaultMaxQueueSize;
  if (!config.dynamic_batching) return options;
  const DynamicBatching& batching = *config.dynamic_batching;
  options.batching = config.max_batch_size > 0;
  options.preferred_rows.assign(batching.preferred_batch_size.begin(), batching.preferred_batch_size.end());
  constexpr std::uint64_t kMaxDelayUs = 3'600'000'000;  // an hour
  options.max_delay =
      std::chrono::microseconds(static_cast<std::int64_t>(std::min(batching.max_queue_delay_us, kMaxDelayUs)));
  if (batching.default_queue_policy.max_queue_size > 0) {
    options.max_queue_size = batching.default_queue_policy.max_queue_size;
  }
  options.priority_levels = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(batching.priority_levels, 1, kMaxPriorityLevels));
  return options;
}

ModelQueue::Options queue_options(const ModelConfig& config, const std::string& version) {
  ModelQueue::Options options{.model_name = config.name, .model_version = version,
                              .batcher = batcher_options(config)};
  options.batched = config.max_batch_size > 0;
  for (const ModelTensorConfig& output : config.outputs) {
    options.output_names.push_back(output.name);
    options.output_reshapes.push_back({output.reshape.value_or(output.dims), output.dims});
  }
  return options;
}

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0xFF51AFD7ED558CCDu;
  return hash ^ (hash >> 32);
}

// 0, "" and false mean the same as nothing.
bool is_unset(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty();
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number == 0;
  return false;
}

}  // namespace

ServedModel::ServedModel(ModelConfig config, std::string version, std::shared_ptr<engine::BatchModel> model,
                         io::Loop& timer_loop)
    : config_(std::move(config)), version_(std::move(version)), metadata_(model_metadata(config_, {version_})),
      stats_(std::make_shared<ModelStats>(config_.name, version_)),
      queue_(std::make_unique<ModelQueue>(queue_options(config_, version_), std::move(model), stats_, timer_loop)) {
  for (const ModelTensorConfig& input : config_.inputs) {
    rules_.push_back({.reshape = {input.dims, input.reshape.value_or(input.dims)}, .optional = input.optional});
  }
}

// What would change the answer and is not there is refused, never left out in silence.
Status ServedModel::check_supported(const InferRequest& request) const {
  for (const RequestedOutput& output : request.outputs) {
    if (output.classification == 0) continue;
    return fail(Code::kUnimplemented, fmt::format("output '{}': classification is not supported", output.name));
  }
  constexpr std::array<std::string_view, 3> kSequence = {"sequence_id", "sequence_start", "sequence_end"};
  for (const Parameter& parameter : request.parameters) {
    if (std::ranges::find(kSequence, parameter.name) == kSequence.end() || is_unset(parameter.value)) continue;
    return fail(Code::kUnimplemented,
                fmt::format("parameter '{}': model '{}' takes no sequences", parameter.name, config_.name));
  }
  return {};
}

ServedModel::~ServedModel() = default;

Result<PreparedRequest> ServedModel::prepare(InferRequest&& request, Time received, Time now) const {
  if (Status supported = check_supported(request); !supported) return fail(std::move(supported.error()));
  PreparedRequest prepared;
  std::vector<Tensor>& inputs = prepared.item.inputs;
  inputs.resize(metadata_.inputs.size());
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if (Status placed = place_input(std::move(request.inputs[i]), i, inputs); !placed) {
      return fail(std::move(placed.error()));
    }
  }
  if (Status counted = count_rows(inputs, prepared.item.rows); !counted) return fail(std::move(counted.error()));
  if (Status chosen = choose_outputs(request.outputs, prepared.outputs); !chosen) {
    return fail(std::move(chosen.error()));
  }
  const std::uint64_t level = priority_level(request.priority);
  prepared.shape_key = shape_key(inputs);
  prepared.priority = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(level, 1, kMaxPriorityLevels) - 1);
  prepared.deadline = queue_deadline(level, request.timeout_us, now);
  prepared.id = std::move(request.id);
  prepared.times.received = received;
  prepared.times.queued = now;
  return prepared;
}

Status ServedModel::place_input(InputTensor&& given, std::size_t hint, std::vector<Tensor>& inputs) const {
  const std::size_t index = index_of(metadata_.inputs, given.name, hint);
  if (index == inputs.size()) {
    return invalid(fmt::format("model '{}' has no input '{}': expected {}", config_.name, given.name,
                               names_of(metadata_.inputs)));
  }
  if (inputs[index].datatype != DataType::kInvalid) {
    return invalid(fmt::format("input '{}' is given twice", given.name));
  }
  if (Status checked = check_input(index, given.tensor); !checked) return checked;
  inputs[index] = std::move(given.tensor);
  return {};
}

Status ServedModel::check_input(std::size_t index, Tensor& tensor) const {
  const TensorMetadata& expected = metadata_.inputs[index];
  if (tensor.datatype != expected.datatype) {
    return invalid(fmt::format("input '{}' has datatype {}: model '{}' expects {}", expected.name,
                               datatype_name(tensor.datatype), config_.name, datatype_name(expected.datatype)));
  }
  if (!shape_matches(tensor.shape, expected.shape)) {
    return invalid(fmt::format("input '{}' has shape {}: model '{}' expects {}{}", expected.name,
                               shape_to_string(tensor.shape), config_.name, shape_to_string(expected.shape),
                               config_.max_batch_size > 0 ? " (the first dimension is the batch)" : ""));
  }
  const Reshape& reshape = rules_[index].reshape;
  if (reshape.needed()) apply_reshape(reshape, config_.max_batch_size > 0, tensor.shape);
  return {};
}

Status ServedModel::count_rows(const std::vector<Tensor>& inputs, std::int64_t& rows) const {
  const bool batched = config_.max_batch_size > 0;
  std::size_t first = inputs.size();  // the one that set `rows`
  rows = 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = metadata_.inputs[i].name;
    if (inputs[i].datatype == DataType::kInvalid) {
      if (rules_[i].optional) continue;
      return invalid(fmt::format("input '{}' is missing: model '{}' expects {}", name, config_.name,
                                 names_of(metadata_.inputs)));
    }
    if (!batched) continue;
    const std::int64_t given = inputs[i].shape[0];
    if (given < 1 || given > config_.max_batch_size) {
      return invalid(fmt::format("input '{}' has shape {}, a batch of {}: model '{}' takes 1 to {} (max_batch_size)",
                                 name, shape_to_string(inputs[i].shape), given, config_.name,
                                 config_.max_batch_size));
    }
    if (first == inputs.size()) {
      first = i;
      rows = given;
    } else if (given != rows) {
      return invalid(fmt::format("input '{}' has a batch of {}, input '{}' one of {}: expected the same", name, given,
                                 metadata_.inputs[first].name, rows));
    }
  }
  return {};
}

Status ServedModel::choose_outputs(const std::vector<RequestedOutput>& asked,
                                   std::vector<std::uint32_t>& chosen) const {
  chosen.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::size_t index = index_of(metadata_.outputs, asked[i].name, i);
    if (index == metadata_.outputs.size()) {
      return invalid(fmt::format("model '{}' has no output '{}': expected {}", config_.name, asked[i].name,
                                 names_of(metadata_.outputs)));
    }
    if (std::ranges::find(chosen, index) != chosen.end()) {
      return invalid(fmt::format("output '{}' is asked for twice", asked[i].name));
    }
    chosen.push_back(static_cast<std::uint32_t>(index));
  }
  return {};
}

// Dimensions that the configuration fixes are the same in every request.
std::uint64_t ServedModel::shape_key(const std::vector<Tensor>& inputs) const {
  std::uint64_t key = 0;
  const std::size_t batch_dims = config_.max_batch_size > 0 ? 1 : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    if (rules_[i].optional) key = mix(key, inputs[i].datatype == DataType::kInvalid ? 1 : 2);
    const Shape& expected = rules_[i].reshape.to;
    for (std::size_t d = 0; d < expected.size() && batch_dims + d < shape.size(); ++d) {
      if (expected[d] < 0) key = mix(key, static_cast<std::uint64_t>(shape[batch_dims + d]));
    }
  }
  return key;
}

std::uint64_t ServedModel::priority_level(std::uint64_t priority) const {
  if (!config_.dynamic_batching) return 0;
  const DynamicBatching& batching = *config_.dynamic_batching;
  return priority == 0 || priority > batching.priority_levels ? batching.default_priority_level : priority;
}

Time ServedModel::queue_deadline(std::uint64_t level, std::uint64_t timeout_us, Time now) const {
  if (!config_.dynamic_batching) return kNever;
  const DynamicBatching& batching = *config_.dynamic_batching;
  const auto of_level = batching.priority_queue_policy.find(level);
  const QueuePolicy& policy =
      of_level == batching.priority_queue_policy.end() ? batching.default_queue_policy : of_level->second;
  if (policy.timeout_action == QueuePolicy::TimeoutAction::kDelay) return kNever;
  std::uint64_t bound_us = policy.default_timeout_us;
  if (policy.allow_timeout_override && timeout_us != 0) {
    bound_us = bound_us == 0 ? timeout_us : std::min(bound_us, timeout_us);
  }
  constexpr std::uint64_t kMaxTimeoutUs = std::uint64_t{1} << 50;  // decades; no overflow in nanoseconds below
  if (bound_us == 0 || bound_us > kMaxTimeoutUs) return kNever;
  return saturating_add(now, std::chrono::microseconds(static_cast<std::int64_t>(bound_us)));
}

}  // namespace sluice::serving
