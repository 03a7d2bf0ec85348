#include "model/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sluice {
namespace {

using Tensors = std::vector<ModelTensorConfig>;

// Inputs or outputs: what the configuration says, what the model says, and how they are called.
struct Side {
  std::string_view kind;  // "input"
  Tensors& given;
  const std::vector<TensorMetadata>& of_model;
};

std::unexpected<Error> invalid(std::string message) { return fail(Code::kInvalidArgument, std::move(message)); }

Shape with_batch(const Shape& dims, bool batched) {
  Shape shape;
  if (batched) shape.push_back(-1);
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

// A signature can be batched when the first dimension of every tensor is variable.
const TensorMetadata* first_without_batch(const ModelSignature& signature) {
  for (const auto* side : {&signature.inputs, &signature.outputs}) {
    for (const TensorMetadata& tensor : *side) {
      if (tensor.shape.empty() || tensor.shape[0] != -1) return &tensor;
    }
  }
  return nullptr;
}

const ModelTensorConfig* find_tensor(const Tensors& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &ModelTensorConfig::name);
  return found == tensors.end() ? nullptr : &*found;
}

// dims that were written with the batch dimension in them say that the model is not to be batched.
bool written_unbatched(const Side& side) {
  return std::ranges::any_of(side.of_model, [&](const TensorMetadata& tensor) {
    const ModelTensorConfig* given = find_tensor(side.given, tensor.name);
    if (!given || given->dims.empty()) return false;
    return given->reshape.value_or(given->dims).size() == tensor.shape.size();
  });
}

Status settle_batch_size(ModelConfig& config, const ModelSignature& signature) {
  const TensorMetadata* unbatched = first_without_batch(signature);
  if (config.max_batch_size < 0) {
    return invalid(
        fmt::format("max_batch_size is {}, it must be 0 (no batch dimension) or more", config.max_batch_size));
  }
  if (!config.max_batch_size_given) {
    const bool batched = !unbatched && !(signature.inputs.empty() && signature.outputs.empty()) &&
                         !written_unbatched({"input", config.inputs, signature.inputs}) &&
                         !written_unbatched({"output", config.outputs, signature.outputs});
    config.max_batch_size = batched ? kAutoMaxBatchSize : 0;
    return {};
  }
  if (config.max_batch_size > 0 && unbatched) {
    return invalid(fmt::format(
        "max_batch_size is {}, which needs a variable first dimension; tensor '{}' of the model has shape {}",
        config.max_batch_size, unbatched->name, shape_to_string(unbatched->shape)));
  }
  return {};
}

Status check_reshape(const Side& side, const ModelTensorConfig& given) {
  const auto fixed = [](std::int64_t dim) { return dim >= 0; };
  if (!given.reshape) return {};
  if (!std::ranges::all_of(given.dims, fixed) || !std::ranges::all_of(*given.reshape, fixed)) return {};
  const auto from = element_count(given.dims), to = element_count(*given.reshape);
  if (!from) return fail(from.error());
  if (!to) return fail(to.error());
  if (*from == *to) return {};
  return invalid(fmt::format("{} '{}' has dims {} and reshape {}, which have {} and {} elements", side.kind, given.name,
                             shape_to_string(given.dims), shape_to_string(*given.reshape), *from, *to));
}

// Fills in what `given` leaves open and checks the rest. A variable dimension of the model may be
// narrowed by the configuration, a fixed one stays.
Status settle_tensor(const Side& side, ModelTensorConfig& given, const TensorMetadata& of_model, bool batched) {
  if (given.datatype == DataType::kInvalid) given.datatype = of_model.datatype;
  if (given.datatype != of_model.datatype) {
    return invalid(fmt::format("{} '{}' has datatype {} in the model, the configuration says {}", side.kind, given.name,
                               datatype_name(of_model.datatype), datatype_name(given.datatype)));
  }
  given.optional = given.optional || of_model.optional;
  if (given.dims.empty() && !given.reshape) {
    given.dims.assign(of_model.shape.begin() + (batched ? 1 : 0), of_model.shape.end());
    return {};
  }
  const Shape shape = with_batch(given.reshape.value_or(given.dims), batched);
  if (!shape_matches(shape, of_model.shape)) {
    return invalid(fmt::format("{} '{}' has shape {} in the model, the configuration says {}{}", side.kind, given.name,
                               shape_to_string(of_model.shape), shape_to_string(shape),
                               batched ? " (with the batch dimension)" : ""));
  }
  return check_reshape(side, given);
}

// Afterwards `given` has every tensor of the model, in the model's order.
Status settle_side(Side side, bool batched) {
  for (const ModelTensorConfig& given : side.given) {
    if (std::ranges::count(side.given, given.name, &ModelTensorConfig::name) > 1) {
      return invalid(fmt::format("{} '{}' is configured twice", side.kind, given.name));
    }
    if (std::ranges::find(side.of_model, given.name, &TensorMetadata::name) == side.of_model.end()) {
      std::vector<std::string_view> names;
      for (const TensorMetadata& tensor : side.of_model) names.push_back(tensor.name);
      return invalid(
          fmt::format("the model has no {} '{}', it has: {}", side.kind, given.name, fmt::join(names, ", ")));
    }
  }
  Tensors settled;
  for (const TensorMetadata& of_model : side.of_model) {
    const ModelTensorConfig* given = find_tensor(side.given, of_model.name);
    ModelTensorConfig& tensor = settled.emplace_back(given ? *given : ModelTensorConfig{.name = of_model.name});
    if (Status status = settle_tensor(side, tensor, of_model, batched); !status) return status;
  }
  side.given = std::move(settled);
  return {};
}

Status check_priorities(const DynamicBatching& batching) {
  if (batching.priority_levels == 0 && batching.default_priority_level == 0 && batching.priority_queue_policy.empty()) {
    return {};
  }
  if (batching.default_priority_level < 1 || batching.default_priority_level > batching.priority_levels) {
    return invalid(fmt::format("dynamic_batching.default_priority_level is {}, it must be 1 to priority_levels ({})",
                               batching.default_priority_level, batching.priority_levels));
  }
  for (const auto& [level, policy] : batching.priority_queue_policy) {
    if (level >= 1 && level <= batching.priority_levels) continue;
    return invalid(fmt::format("dynamic_batching.priority_queue_policy: level {}, it must be 1 to priority_levels ({})",
                               level, batching.priority_levels));
  }
  return {};
}

Status settle_batching(ModelConfig& config) {
  if (!config.dynamic_batching) {
    if (config.max_batch_size > 1) config.dynamic_batching.emplace();
    return {};
  }
  if (config.max_batch_size == 0) {
    config.warnings.emplace_back("dynamic_batching: has no effect, max_batch_size is 0");
    config.dynamic_batching.reset();
    return {};
  }
  for (const std::int32_t size : config.dynamic_batching->preferred_batch_size) {
    if (size >= 1 && size <= config.max_batch_size) continue;
    return invalid(fmt::format("dynamic_batching.preferred_batch_size has {}, it must be 1 to max_batch_size ({})",
                               size, config.max_batch_size));
  }
  return check_priorities(*config.dynamic_batching);
}

Status check_warmup(const ModelConfig& config, const Warmup& warmup) {
  const auto most = static_cast<std::uint32_t>(std::max(config.max_batch_size, 1));
  if (warmup.batch_size > most) {
    return invalid(fmt::format("model_warmup '{}' has batch_size {}, max_batch_size is {}", warmup.name,
                               warmup.batch_size, most));
  }
  for (const auto& [name, input] : warmup.inputs) {
    const ModelTensorConfig* tensor = find_tensor(config.inputs, name);
    if (!tensor) return invalid(fmt::format("model_warmup '{}': the model has no input '{}'", warmup.name, name));
    if (input.datatype != tensor->datatype) {
      return invalid(fmt::format("model_warmup '{}': input '{}' has datatype {}, the model expects {}", warmup.name,
                                 name, datatype_name(input.datatype), datatype_name(tensor->datatype)));
    }
    if (!shape_matches(input.dims, tensor->dims)) {
      return invalid(fmt::format("model_warmup '{}': input '{}' has dims {}, the model expects {}", warmup.name, name,
                                 shape_to_string(input.dims), shape_to_string(tensor->dims)));
    }
  }
  return {};
}

Status settle_inline(ModelConfig& config) {
  const auto found = config.parameters.find("sluice.inline");
  if (found == config.parameters.end()) return {};
  if (found->second != "true" && found->second != "false") {
    return invalid(fmt::format("parameter 'sluice.inline' is '{}', it must be 'true' or 'false'", found->second));
  }
  config.run_inline = found->second == "true";
  return {};
}

std::vector<TensorMetadata> full_shapes(const Tensors& tensors, bool batched) {
  std::vector<TensorMetadata> out;
  for (const ModelTensorConfig& tensor : tensors) {
    out.push_back({tensor.name, tensor.datatype, with_batch(tensor.dims, batched), tensor.optional});
  }
  return out;
}

}  // namespace

Result<ModelConfig> complete_model_config(ModelConfig config, const ModelSignature& signature) {
  if (Status status = settle_batch_size(config, signature); !status) return fail(std::move(status.error()));
  const bool batched = config.max_batch_size > 0;
  if (Status status = settle_side({"input", config.inputs, signature.inputs}, batched); !status) {
    return fail(std::move(status.error()));
  }
  if (Status status = settle_side({"output", config.outputs, signature.outputs}, batched); !status) {
    return fail(std::move(status.error()));
  }
  if (Status status = settle_batching(config); !status) return fail(std::move(status.error()));
  for (const Warmup& warmup : config.warmup) {
    if (Status status = check_warmup(config, warmup); !status) return fail(std::move(status.error()));
  }
  if (Status status = settle_inline(config); !status) return fail(std::move(status.error()));
  if (config.instance_count == 0) return invalid("instance_group: the count of instances is 0, at least 1 is needed");
  return config;
}

ModelMetadata model_metadata(const ModelConfig& config, std::vector<std::string> versions) {
  const bool batched = config.max_batch_size > 0;
  return {.name = config.name,
          .versions = std::move(versions),
          .platform = config.platform,
          .inputs = full_shapes(config.inputs, batched),
          .outputs = full_shapes(config.outputs, batched)};
}

}  // namespace sluice
