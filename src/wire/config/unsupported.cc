#include "wire/config/unsupported.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>

namespace sluice::config {
namespace {

namespace pb = google::protobuf;

enum class Action { kWarn, kRefuse };

struct Rule {
  std::string_view path;
  Action action;
  std::string_view reason;
};

constexpr Rule kRules[] = {
    {"input.format", Action::kWarn, "ignored, tensors are passed on as they are"},
    {"input.is_shape_tensor", Action::kRefuse, "shape tensors are not supported"},
    {"input.allow_ragged_batch", Action::kRefuse, "ragged batches are not supported"},
    {"input.is_non_linear_format_io", Action::kRefuse, "non-linear formats are not supported"},
    {"output.is_shape_tensor", Action::kRefuse, "shape tensors are not supported"},
    {"output.is_non_linear_format_io", Action::kRefuse, "non-linear formats are not supported"},
    {"instance_group.gpus", Action::kWarn, "ignored, instances run on the CPU"},
    {"instance_group.profile", Action::kWarn, "ignored, it belongs to TensorRT"},
    {"instance_group.rate_limiter", Action::kWarn, "ignored, instances share one compute pool"},
    {"instance_group.passive", Action::kRefuse, "passive instances are not supported"},
    {"instance_group.secondary_devices", Action::kRefuse, "secondary devices are not supported"},
    {"instance_group.host_policy", Action::kWarn, "ignored"},
    {"cc_model_filenames", Action::kWarn, "ignored, it belongs to GPUs"},
    {"metric_tags", Action::kWarn, "ignored"},
    {"optimization", Action::kWarn, "ignored, the engine chooses its own optimizations"},
    {"sequence_batching", Action::kRefuse, "sequences are not supported"},
    {"ensemble_scheduling", Action::kRefuse, "ensembles are not supported"},
    {"model_operations", Action::kRefuse, "libraries of custom operations are not supported"},
    {"model_transaction_policy.decoupled", Action::kRefuse, "decoupled models are not supported"},
    {"batch_input", Action::kRefuse, "inputs made from the batch are not supported"},
    {"batch_output", Action::kRefuse, "outputs scattered over the batch are not supported"},
    {"model_repository_agents", Action::kRefuse, "repository agents are not supported"},
    {"response_cache", Action::kWarn, "ignored, responses are not cached"},
    {"runtime", Action::kWarn, "ignored, backends are built in"},
    {"model_metrics", Action::kWarn, "ignored, the buckets of histograms are fixed"},
};

const Rule* rule_for(std::string_view path) {
  const auto* found = std::ranges::find(kRules, path, &Rule::path);
  return found == std::end(kRules) ? nullptr : found;
}

// `index`: of the repeated message in which the field stands is in `node` already; a field that is repeated
// itself is named once, at its first value.
Status apply(const Rule& rule, const Node& node, const std::string& field, std::vector<std::string>& warnings) {
  if (rule.action == Action::kRefuse) return node.refuse(Code::kUnimplemented, field, rule.reason);
  warnings.push_back(fmt::format("{}: {}", node.place(field), rule.reason));
  return {};
}

Status walk(const Node& node, std::vector<std::string>& warnings) {
  const pb::Message& message = node.message();
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string path = node.path().empty() ? field->name() : fmt::format("{}.{}", node.path(), field->name());
    if (const Rule* rule = rule_for(path)) {
      if (Status status = apply(*rule, node, field->name(), warnings); !status) return status;
      continue;
    }
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const pb::Message& nested = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                       : reflection->GetMessage(message, field);
      if (Status status = walk(node.child(field->name(), nested, i), warnings); !status) return status;
    }
  }
  return {};
}

}  // namespace

Status check_supported(const Node& root, std::vector<std::string>& warnings) { return walk(root, warnings); }

}  // namespace sluice::config
