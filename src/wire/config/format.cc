// ModelConfig written out: as config.pbtxt, and as the JSON of /v2/models/{m}/config (Triton's field names,
// 64-bit integers as numbers).
#include <google/protobuf/text_format.h>

#include "base/json_writer.h"
#include "model_config.pb.h"
#include "wire/config/pbtxt.h"

namespace sluice {
namespace {

namespace pb = ::inference;

void write_dims(const Shape& dims, google::protobuf::RepeatedField<std::int64_t>& out) {
  out.Add(dims.begin(), dims.end());
}

template <class Message>
void write_tensor(const ModelTensorConfig& tensor, Message& out) {
  out.set_name(tensor.name);
  out.set_data_type(static_cast<pb::DataType>(tensor.datatype));
  write_dims(tensor.dims, *out.mutable_dims());
  if (tensor.reshape) write_dims(*tensor.reshape, *out.mutable_reshape()->mutable_shape());
}

void write_policy(const QueuePolicy& policy, pb::ModelQueuePolicy& out) {
  const bool delay = policy.timeout_action == QueuePolicy::TimeoutAction::kDelay;
  out.set_timeout_action(delay ? pb::ModelQueuePolicy::DELAY : pb::ModelQueuePolicy::REJECT);
  out.set_default_timeout_microseconds(policy.default_timeout_us);
  out.set_allow_timeout_override(policy.allow_timeout_override);
  out.set_max_queue_size(policy.max_queue_size);
}

void write_batching(const DynamicBatching& batching, pb::ModelDynamicBatching& out) {
  out.mutable_preferred_batch_size()->Add(batching.preferred_batch_size.begin(), batching.preferred_batch_size.end());
  out.set_max_queue_delay_microseconds(batching.max_queue_delay_us);
  out.set_preserve_ordering(batching.preserve_ordering);
  out.set_priority_levels(batching.priority_levels);
  out.set_default_priority_level(batching.default_priority_level);
  write_policy(batching.default_queue_policy, *out.mutable_default_queue_policy());
  for (const auto& [level, policy] : batching.priority_queue_policy) {
    write_policy(policy, (*out.mutable_priority_queue_policy())[level]);
  }
}

void write_versions(const VersionPolicy& policy, pb::ModelVersionPolicy& out) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest: out.mutable_latest()->set_num_versions(policy.num_versions); return;
    case VersionPolicy::Kind::kAll: out.mutable_all(); return;
    case VersionPolicy::Kind::kSpecific: write_dims(policy.versions, *out.mutable_specific()->mutable_versions());
  }
}

void write_warmup(const Warmup& warmup, pb::ModelWarmup& out) {
  out.set_name(warmup.name);
  out.set_batch_size(warmup.batch_size);
  out.set_count(warmup.count);
  for (const auto& [name, input] : warmup.inputs) {
    pb::ModelWarmup::Input& to = (*out.mutable_inputs())[name];
    to.set_data_type(static_cast<pb::DataType>(input.datatype));
    write_dims(input.dims, *to.mutable_dims());
    switch (input.source) {
      case WarmupInput::Source::kZero: to.set_zero_data(true); break;
      case WarmupInput::Source::kRandom: to.set_random_data(true); break;
      case WarmupInput::Source::kFile: to.set_input_data_file(input.file); break;
    }
  }
}

pb::ModelConfig to_message(const ModelConfig& config) {
  pb::ModelConfig out;
  out.set_name(config.name);
  out.set_platform(config.platform);
  out.set_backend(config.backend);
  write_versions(config.version_policy, *out.mutable_version_policy());
  out.set_max_batch_size(config.max_batch_size);
  for (const ModelTensorConfig& tensor : config.inputs) {
    pb::ModelInput& input = *out.add_input();
    write_tensor(tensor, input);
    input.set_optional(tensor.optional);
  }
  for (const ModelTensorConfig& tensor : config.outputs) {
    pb::ModelOutput& output = *out.add_output();
    write_tensor(tensor, output);
    output.set_label_filename(tensor.label_filename);
  }
  pb::ModelInstanceGroup& group = *out.add_instance_group();
  group.set_kind(pb::ModelInstanceGroup::KIND_CPU);
  group.set_count(static_cast<std::int32_t>(config.instance_count));
  out.set_default_model_filename(config.default_model_filename);
  if (config.dynamic_batching) write_batching(*config.dynamic_batching, *out.mutable_dynamic_batching());
  for (const auto& [name, value] : config.parameters) (*out.mutable_parameters())[name].set_string_value(value);
  for (const Warmup& warmup : config.warmup) write_warmup(warmup, *out.add_model_warmup());
  if (config.decoupled) out.mutable_model_transaction_policy()->set_decoupled(true);
  return out;
}

template <class Values>
void json_integers(JsonWriter& json, std::string_view key, const Values& values) {
  json.key(key).begin_array();
  for (const auto value : values) json.integer(value);
  json.end_array();
}

void json_tensor(JsonWriter& json, const ModelTensorConfig& tensor, bool is_input) {
  json.begin_object().key("name").string(tensor.name);
  json.key("data_type").string(config_datatype_name(tensor.datatype));
  json_integers(json, "dims", tensor.dims);
  if (tensor.reshape) {
    json.key("reshape").begin_object();
    json_integers(json, "shape", *tensor.reshape);
    json.end_object();
  }
  if (is_input) {
    json.key("optional").boolean(tensor.optional);
  } else {
    json.key("label_filename").string(tensor.label_filename);
  }
  json.end_object();
}

void json_versions(JsonWriter& json, const VersionPolicy& policy) {
  json.key("version_policy").begin_object();
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      json.key("latest").begin_object().key("num_versions").unsigned_integer(policy.num_versions).end_object();
      break;
    case VersionPolicy::Kind::kAll: json.key("all").begin_object().end_object(); break;
    case VersionPolicy::Kind::kSpecific:
      json.key("specific").begin_object();
      json_integers(json, "versions", policy.versions);
      json.end_object();
  }
  json.end_object();
}

void json_policy(JsonWriter& json, std::string_view key, const QueuePolicy& policy) {
  const bool delay = policy.timeout_action == QueuePolicy::TimeoutAction::kDelay;
  json.key(key).begin_object().key("timeout_action").string(delay ? "DELAY" : "REJECT");
  json.key("default_timeout_microseconds").unsigned_integer(policy.default_timeout_us);
  json.key("allow_timeout_override").boolean(policy.allow_timeout_override);
  json.key("max_queue_size").unsigned_integer(policy.max_queue_size).end_object();
}

void json_batching(JsonWriter& json, const DynamicBatching& batching) {
  json.key("dynamic_batching").begin_object();
  json_integers(json, "preferred_batch_size", batching.preferred_batch_size);
  json.key("max_queue_delay_microseconds").unsigned_integer(batching.max_queue_delay_us);
  json.key("preserve_ordering").boolean(batching.preserve_ordering);
  json.key("priority_levels").unsigned_integer(batching.priority_levels);
  json.key("default_priority_level").unsigned_integer(batching.default_priority_level);
  json_policy(json, "default_queue_policy", batching.default_queue_policy);
  json.key("priority_queue_policy").begin_object();
  for (const auto& [level, policy] : batching.priority_queue_policy) json_policy(json, std::to_string(level), policy);
  json.end_object().end_object();
}

void json_warmup(JsonWriter& json, const Warmup& warmup) {
  json.begin_object().key("name").string(warmup.name).key("batch_size").unsigned_integer(warmup.batch_size);
  json.key("inputs").begin_object();
  for (const auto& [name, input] : warmup.inputs) {
    json.key(name).begin_object().key("data_type").string(config_datatype_name(input.datatype));
    json_integers(json, "dims", input.dims);
    switch (input.source) {
      case WarmupInput::Source::kZero: json.key("zero_data").boolean(true); break;
      case WarmupInput::Source::kRandom: json.key("random_data").boolean(true); break;
      case WarmupInput::Source::kFile: json.key("input_data_file").string(input.file); break;
    }
    json.end_object();
  }
  json.end_object().key("count").unsigned_integer(warmup.count).end_object();
}

}  // namespace

std::string format_model_config(const ModelConfig& config) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string out;
  printer.PrintToString(to_message(config), &out);
  return out;
}

std::string format_model_config_json(const ModelConfig& config) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("name").string(config.name).key("platform").string(config.platform);
  json.key("backend").string(config.backend);
  json_versions(json, config.version_policy);
  json.key("max_batch_size").integer(config.max_batch_size);
  json.key("input").begin_array();
  for (const ModelTensorConfig& tensor : config.inputs) json_tensor(json, tensor, true);
  json.end_array().key("output").begin_array();
  for (const ModelTensorConfig& tensor : config.outputs) json_tensor(json, tensor, false);
  json.end_array().key("instance_group").begin_array().begin_object();
  json.key("kind").string("KIND_CPU").key("count").unsigned_integer(config.instance_count);
  json.end_object().end_array().key("default_model_filename").string(config.default_model_filename);
  if (config.dynamic_batching) json_batching(json, *config.dynamic_batching);
  json.key("parameters").begin_object();
  for (const auto& [name, value] : config.parameters) {
    json.key(name).begin_object().key("string_value").string(value).end_object();
  }
  json.end_object().key("model_warmup").begin_array();
  for (const Warmup& warmup : config.warmup) json_warmup(json, warmup);
  json.end_array().key("model_transaction_policy").begin_object().key("decoupled").boolean(config.decoupled);
  json.end_object().end_object();
  return out;
}

}  // namespace sluice
