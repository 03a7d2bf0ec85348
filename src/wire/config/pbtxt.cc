#include "wire/config/pbtxt.h"

#include <fmt/format.h>

#include "model_config.pb.h"
#include "wire/config/config_text.h"
#include "wire/config/unsupported.h"

namespace sluice {
namespace {

namespace pb = ::inference;
using config::Node;

constexpr std::int64_t kMaxInstances = 1024;

std::unexpected<Error> invalid(const Node& node, std::string_view field, std::string_view reason, int index = 0) {
  return node.refuse(Code::kInvalidArgument, field, reason, index);
}

// -1 is "any"; a 0 in a signature could hold nothing.
template <class Values>
Result<Shape> read_dims(const Node& node, std::string_view field, const Values& values) {
  if (static_cast<std::size_t>(values.size()) >= kMaxRank) {
    return invalid(node, field, fmt::format("has {} dimensions, at most {} are possible", values.size(), kMaxRank - 1));
  }
  for (int i = 0; i < values.size(); ++i) {
    if (values[i] < 1 && values[i] != -1) {
      return invalid(node, field, fmt::format("is {}, a dimension is at least 1, or -1 for any", values[i]), i);
    }
  }
  return Shape(values.begin(), values.end());
}

template <class Message>
Result<ModelTensorConfig> read_tensor(const Node& node, const Message& from) {
  if (from.name().empty()) return invalid(node, "name", "is missing");
  ModelTensorConfig out{.name = from.name(), .datatype = static_cast<DataType>(from.data_type())};
  auto dims = read_dims(node, "dims", from.dims());
  if (!dims) return fail(std::move(dims.error()));
  out.dims = std::move(*dims);
  if (from.has_reshape()) {
    auto shape = read_dims(node.child("reshape", from.reshape()), "shape", from.reshape().shape());
    if (!shape) return fail(std::move(shape.error()));
    out.reshape = std::move(*shape);
  }
  return out;
}

Status read_inputs(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  for (int i = 0; i < from.input_size(); ++i) {
    auto tensor = read_tensor(root.child("input", from.input(i), i), from.input(i));
    if (!tensor) return fail(std::move(tensor.error()));
    tensor->optional = from.input(i).optional();
    out.inputs.push_back(std::move(*tensor));
  }
  return {};
}

Status read_outputs(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  for (int i = 0; i < from.output_size(); ++i) {
    auto tensor = read_tensor(root.child("output", from.output(i), i), from.output(i));
    if (!tensor) return fail(std::move(tensor.error()));
    tensor->label_filename = from.output(i).label_filename();
    out.outputs.push_back(std::move(*tensor));
  }
  return {};
}

Status read_version_policy(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  const pb::ModelVersionPolicy& policy = from.version_policy();
  const Node node = root.child("version_policy", policy);
  if (policy.has_all()) {
    out.version_policy.kind = VersionPolicy::Kind::kAll;
  } else if (policy.has_latest()) {
    out.version_policy.num_versions = policy.latest().num_versions();
    if (policy.latest().num_versions() == 0) return invalid(node, "latest", "num_versions is 0, at least 1 is needed");
  } else if (policy.has_specific()) {
    out.version_policy.kind = VersionPolicy::Kind::kSpecific;
    const Node specific = node.child("specific", policy.specific());
    if (policy.specific().versions().empty()) return invalid(node, "specific", "names no versions");
    for (int i = 0; i < policy.specific().versions_size(); ++i) {
      const std::int64_t version = policy.specific().versions(i);
      if (version < 1) return invalid(specific, "versions", fmt::format("is {}, at least 1 is needed", version), i);
      out.version_policy.versions.push_back(version);
    }
  }
  return {};
}

Status read_instances(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  std::int64_t count = 0;
  for (int i = 0; i < from.instance_group_size(); ++i) {
    const pb::ModelInstanceGroup& group = from.instance_group(i);
    const Node node = root.child("instance_group", group, i);
    if (group.kind() == pb::ModelInstanceGroup::KIND_GPU) {
      return node.refuse(Code::kUnimplemented, "kind", "KIND_GPU: this build runs models on the CPU, use KIND_CPU");
    }
    if (group.count() < 0) return invalid(node, "count", fmt::format("is {}, at least 1 is needed", group.count()));
    count += group.count() == 0 ? 1 : group.count();
    if (count > kMaxInstances) {
      return invalid(node, "count", fmt::format("makes {} instances, at most {} are possible", count, kMaxInstances));
    }
  }
  if (count == 0) return {};
  out.instances_given = true;
  out.instance_count = static_cast<std::uint32_t>(count);
  return {};
}

QueuePolicy read_queue_policy(const pb::ModelQueuePolicy& from) {
  return {.timeout_action = from.timeout_action() == pb::ModelQueuePolicy::DELAY ? QueuePolicy::TimeoutAction::kDelay
                                                                                 : QueuePolicy::TimeoutAction::kReject,
          .default_timeout_us = from.default_timeout_microseconds(),
          .allow_timeout_override = from.allow_timeout_override(),
          .max_queue_size = from.max_queue_size()};
}

DynamicBatching read_batching(const pb::ModelDynamicBatching& from) {
  DynamicBatching out;
  out.preferred_batch_size.assign(from.preferred_batch_size().begin(), from.preferred_batch_size().end());
  out.max_queue_delay_us = from.max_queue_delay_microseconds();
  out.preserve_ordering = from.preserve_ordering();
  out.priority_levels = from.priority_levels();
  out.default_priority_level = from.default_priority_level();
  out.default_queue_policy = read_queue_policy(from.default_queue_policy());
  for (const auto& [level, policy] : from.priority_queue_policy()) {
    out.priority_queue_policy[level] = read_queue_policy(policy);
  }
  return out;
}

Result<WarmupInput> read_warmup_input(const Node& warmup, const std::string& name, const pb::ModelWarmup::Input& from) {
  if (from.data_type() == pb::TYPE_INVALID) {
    return invalid(warmup, "inputs", fmt::format("input '{}' has no data_type", name));
  }
  WarmupInput out{.datatype = static_cast<DataType>(from.data_type())};
  auto dims = read_dims(warmup.child("inputs", from), "dims", from.dims());
  if (!dims) return fail(std::move(dims.error()));
  out.dims = std::move(*dims);
  for (const std::int64_t dim : out.dims) {
    if (dim < 0) return invalid(warmup, "inputs", fmt::format("input '{}' has a dimension of -1", name));
  }
  if (from.random_data()) out.source = WarmupInput::Source::kRandom;
  if (from.has_input_data_file()) {
    out.source = WarmupInput::Source::kFile;
    out.file = from.input_data_file();
  }
  return out;
}

Status read_warmups(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  for (int i = 0; i < from.model_warmup_size(); ++i) {
    const pb::ModelWarmup& sample = from.model_warmup(i);
    const Node node = root.child("model_warmup", sample, i);
    Warmup warmup{.name = sample.name(), .batch_size = sample.batch_size()};
    warmup.count = sample.count() == 0 ? 1 : sample.count();
    for (const auto& [name, input] : sample.inputs()) {
      auto read = read_warmup_input(node, name, input);
      if (!read) return fail(std::move(read.error()));
      warmup.inputs.emplace(name, std::move(*read));
    }
    out.warmup.push_back(std::move(warmup));
  }
  return {};
}

Status read_all(const Node& root, const pb::ModelConfig& from, ModelConfig& out) {
  out.name = from.name();
  out.platform = from.platform();
  out.backend = from.backend();
  out.default_model_filename = from.default_model_filename();
  out.max_batch_size = from.max_batch_size();
  out.max_batch_size_given = from.has_max_batch_size();
  if (from.max_batch_size() < 0) {
    return invalid(root, "max_batch_size", fmt::format("is {}, 0 or more is needed", from.max_batch_size()));
  }
  if (from.has_dynamic_batching()) out.dynamic_batching = read_batching(from.dynamic_batching());
  for (const auto& [name, value] : from.parameters()) out.parameters[name] = value.string_value();
  for (const auto& read : {read_inputs, read_outputs, read_version_policy, read_instances, read_warmups}) {
    if (Status status = read(root, from, out); !status) return status;
  }
  return {};
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view text) {
  pb::ModelConfig message;
  Node::Tree places;
  if (Status status = config::parse_text(text, message, places); !status) return fail(std::move(status.error()));
  const Node root(message, &places, "");
  ModelConfig out;
  if (Status status = config::check_supported(root, out.warnings); !status) return fail(std::move(status.error()));
  if (Status status = read_all(root, message, out); !status) return fail(std::move(status.error()));
  return out;
}

}  // namespace sluice
