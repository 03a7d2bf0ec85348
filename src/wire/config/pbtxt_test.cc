#include "wire/config/pbtxt.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kOcr = R"(# Text recognition, batched.
name: "ocr_rec"
backend: "onnxruntime"
max_batch_size: 16
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ 3, 48, -1 ]
  }
]
output {
  name: "softmax"
  data_type: TYPE_FP32
  dims: [ -1, 6625 ]
  label_filename: "labels.txt"
}
instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_AUTO } ]
version_policy: { specific: { versions: [ 1, 3 ] } }
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 500
  preserve_ordering: true
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1000 max_queue_size: 64 }
  priority_queue_policy { key: 1 value { allow_timeout_override: true } }
}
parameters { key: "sluice.inline" value: { string_value: "true" } }
model_warmup {
  name: "first"
  batch_size: 4
  inputs { key: "x" value: { data_type: TYPE_FP32 dims: [ 3, 48, 320 ] random_data: true } }
}
)";

ModelConfig must_parse(std::string_view text) {
  auto config = parse_model_config(text);
  EXPECT_TRUE(config) << config.error().message;
  return config ? std::move(*config) : ModelConfig{};
}

Error refusal(std::string_view text) {
  const auto config = parse_model_config(text);
  return config ? Error{Code::kOk, "accepted"} : config.error();
}

void expect_refusal(std::string_view text, Code code, std::string_view message) {
  const Error error = refusal(text);
  EXPECT_EQ(error.code, code) << text;
  EXPECT_THAT(error.message, HasSubstr(message)) << text;
}

TEST(ParseModelConfig, ReadsAUsualConfiguration) {
  const ModelConfig config = must_parse(kOcr);
  EXPECT_EQ(config.name, "ocr_rec");
  EXPECT_EQ(config.backend, "onnxruntime");
  EXPECT_EQ(config.max_batch_size, 16);
  EXPECT_TRUE(config.max_batch_size_given);
  ASSERT_EQ(config.inputs.size(), 1U);
  EXPECT_EQ(config.inputs[0].datatype, DataType::kFp32);
  EXPECT_THAT(config.inputs[0].dims, ElementsAre(3, 48, -1));
  EXPECT_EQ(config.outputs.at(0).label_filename, "labels.txt");
  EXPECT_TRUE(config.instances_given);
  EXPECT_EQ(config.instance_count, 3U);
  EXPECT_EQ(config.version_policy.kind, VersionPolicy::Kind::kSpecific);
  EXPECT_THAT(config.version_policy.versions, ElementsAre(1, 3));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ParseModelConfig, ReadsBatchingParametersAndWarmUps) {
  const ModelConfig config = must_parse(kOcr);
  ASSERT_TRUE(config.dynamic_batching);
  const DynamicBatching& batching = *config.dynamic_batching;
  EXPECT_THAT(batching.preferred_batch_size, ElementsAre(4, 8));
  EXPECT_EQ(batching.max_queue_delay_us, 500U);
  EXPECT_TRUE(batching.preserve_ordering);
  EXPECT_EQ(batching.default_queue_policy.timeout_action, QueuePolicy::TimeoutAction::kDelay);
  EXPECT_EQ(batching.default_queue_policy.default_timeout_us, 1000U);
  EXPECT_EQ(batching.default_queue_policy.max_queue_size, 64U);
  EXPECT_TRUE(batching.priority_queue_policy.at(1).allow_timeout_override);
  EXPECT_EQ(config.parameters.at("sluice.inline"), "true");
  ASSERT_EQ(config.warmup.size(), 1U);
  EXPECT_EQ(config.warmup[0].batch_size, 4U);
  EXPECT_EQ(config.warmup[0].count, 1U);
  EXPECT_EQ(config.warmup[0].inputs.at("x").source, WarmupInput::Source::kRandom);
  EXPECT_THAT(config.warmup[0].inputs.at("x").dims, ElementsAre(3, 48, 320));
}

TEST(ParseModelConfig, TellsWhatIsNotSaidFromZero) {
  const ModelConfig empty = must_parse("");
  EXPECT_FALSE(empty.max_batch_size_given);
  EXPECT_FALSE(empty.instances_given);
  EXPECT_EQ(empty.instance_count, 1U);
  EXPECT_FALSE(empty.dynamic_batching);
  EXPECT_EQ(empty.version_policy.kind, VersionPolicy::Kind::kLatest);
  EXPECT_EQ(empty.version_policy.num_versions, 1U);
  EXPECT_TRUE(must_parse("max_batch_size: 0").max_batch_size_given);
  EXPECT_TRUE(must_parse("dynamic_batching { }").dynamic_batching);
  EXPECT_EQ(must_parse("version_policy { all { } }").version_policy.kind, VersionPolicy::Kind::kAll);
}

TEST(ParseModelConfig, ReadsAReshapeToNothing) {
  const ModelConfig config = must_parse("input { name: 'a' data_type: TYPE_INT32 dims: 1 reshape { shape: [ ] } }");
  ASSERT_TRUE(config.inputs.at(0).reshape);
  EXPECT_THAT(*config.inputs[0].reshape, IsEmpty());
  EXPECT_FALSE(must_parse("input { name: 'a' dims: 1 }").inputs.at(0).reshape);
}

TEST(ParseModelConfig, NamesLineAndColumnOfWhatItCannotRead) {
  expect_refusal("name: \"a\"\n  max_batchsize: 4\n", Code::kInvalidArgument, "config.pbtxt:2:");
  expect_refusal("name: \"a\"\n  max_batchsize: 4\n", Code::kInvalidArgument, "max_batchsize");
  expect_refusal("max_batch_size: 4\nmax_batch_size: 8", Code::kInvalidArgument, "config.pbtxt:2:15: ");
  expect_refusal("max_batch_size: 'many'", Code::kInvalidArgument, "config.pbtxt:1:17: ");
  expect_refusal("max_batch_size: 99999999999", Code::kInvalidArgument, "config.pbtxt:1:17: ");
  expect_refusal("input { data_type: TYPE_FP8 }", Code::kInvalidArgument, "TYPE_FP8");
  expect_refusal("input {\n  name: \"a\"\n", Code::kInvalidArgument, "config.pbtxt:3:1: ");
  expect_refusal("name: \"a\nb\"", Code::kInvalidArgument, "config.pbtxt:1:9: ");
  expect_refusal("dynamic_batching { } sequence_batching { }", Code::kInvalidArgument, "oneof");
  expect_refusal("{\"name\": \"json\"}", Code::kInvalidArgument, "config.pbtxt:1:1: ");
}

TEST(ParseModelConfig, NamesThePlaceOfAValueThatMakesNoSense) {
  expect_refusal("name: \"a\"\nmax_batch_size: -1", Code::kInvalidArgument,
                 "config.pbtxt:2:1: max_batch_size: is -1, 0 or more is needed");
  expect_refusal("input { dims: 1 }", Code::kInvalidArgument, "input.name: is missing");
  expect_refusal("input { name: 'a'\ndims: [ 3, 0 ] }", Code::kInvalidArgument, "config.pbtxt:2:1: input.dims: is 0");
  expect_refusal("output { name: 'a' dims: -2 }", Code::kInvalidArgument, "config.pbtxt:1:20: output.dims: is -2");
  expect_refusal("input { name: 'a' }\ninput { name: 'b' reshape { shape: 0 } }", Code::kInvalidArgument,
                 "config.pbtxt:2:29: input.reshape.shape: is 0");
  expect_refusal("input { name: 'a' dims: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] }", Code::kInvalidArgument,
                 "has 16 dimensions, at most 15");
  expect_refusal("version_policy { latest { } }", Code::kInvalidArgument, "version_policy.latest: num_versions is 0");
  expect_refusal("version_policy { specific { } }", Code::kInvalidArgument, "names no versions");
  expect_refusal("version_policy { specific { versions: [1, 0] } }", Code::kInvalidArgument,
                 "config.pbtxt:1:29: version_policy.specific.versions: is 0");
  expect_refusal("instance_group { count: -2 }", Code::kInvalidArgument, "instance_group.count: is -2");
  expect_refusal("instance_group { count: 1024 } instance_group { count: 1 }", Code::kInvalidArgument,
                 "makes 1025 instances, at most 1024");
  expect_refusal("model_warmup { inputs { key: 'a' value { dims: 1 } } }", Code::kInvalidArgument,
                 "model_warmup.inputs: input 'a' has no data_type");
  expect_refusal("model_warmup { inputs { key: 'a' value { data_type: TYPE_FP32 dims: -1 } } }",
                 Code::kInvalidArgument, "'a' has a dimension of -1");
}

TEST(ParseModelConfig, RefusesByNameWhatWouldChangeResults) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"sequence_batching { direct { } }", "sequence_batching: sequences are not supported"},
      {"ensemble_scheduling { step { model_name: 'a' } }", "ensemble_scheduling: ensembles are not supported"},
      {"model_transaction_policy { decoupled: true }", "model_transaction_policy.decoupled: decoupled"},
      {"instance_group { kind: KIND_GPU }", "instance_group.kind: KIND_GPU"},
      {"instance_group { passive: true }", "instance_group.passive"},
      {"instance_group { secondary_devices { kind: KIND_NVDLA } }", "instance_group.secondary_devices"},
      {"input { name: 'a' allow_ragged_batch: true }", "input.allow_ragged_batch"},
      {"input { name: 'a' is_shape_tensor: true }", "input.is_shape_tensor"},
      {"input { name: 'a' is_non_linear_format_io: true }", "input.is_non_linear_format_io"},
      {"output { name: 'a' is_shape_tensor: true }", "output.is_shape_tensor"},
      {"output { name: 'a' is_non_linear_format_io: true }", "output.is_non_linear_format_io"},
      {"batch_input { kind: BATCH_ITEM_SHAPE }", "batch_input"},
      {"batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE }", "batch_output"},
      {"model_operations { op_library_filename: 'x.so' }", "model_operations"},
      {"model_repository_agents { agents { name: 'x' } }", "model_repository_agents"},
  };
  for (const auto& [text, message] : cases) expect_refusal(text, Code::kUnimplemented, message);
  expect_refusal("name: 'a'\n  sequence_batching { }", Code::kUnimplemented, "config.pbtxt:2:3: sequence_batching");
  expect_refusal("input { name: 'a' }\ninput { name: 'b'\n allow_ragged_batch: true }", Code::kUnimplemented,
                 "config.pbtxt:3:2: input.allow_ragged_batch");
  EXPECT_TRUE(parse_model_config("model_transaction_policy { decoupled: false }"));
}

TEST(ParseModelConfig, WarnsOfWhatOnlyConcernsSpeedOrDevices) {
  const ModelConfig config = must_parse(R"(
input { name: "a" format: FORMAT_NCHW }
instance_group { gpus: [ 0, 1 ] profile: "x" host_policy: "numa" rate_limiter { resources { name: "r" count: 1 } } }
optimization {
  graph { level: 1 } cuda { graphs: true graph_spec { batch_size: 1 input { key: "a" value { dim: 2 } } } }
  execution_accelerators { cpu_execution_accelerator { name: "openvino" parameters { key: "k" value: "v" } } }
  input_pinned_memory { enable: false } priority: PRIORITY_MAX eager_batching: true
}
cc_model_filenames { key: "7.5" value: "m.plan" }
metric_tags { key: "k" value: "v" }
response_cache { enable: true }
runtime: "onnxruntime"
model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: [ 1, 2 ] } } }
)");
  EXPECT_THAT(config.warnings,
              ElementsAre("config.pbtxt:2:19: input.format: ignored, tensors are passed on as they are",
                          HasSubstr("3:18: instance_group.gpus"), HasSubstr("instance_group.profile"),
                          HasSubstr("instance_group.rate_limiter"), HasSubstr("instance_group.host_policy"),
                          HasSubstr("9:1: cc_model_filenames"), HasSubstr("metric_tags"),
                          HasSubstr("4:1: optimization"), HasSubstr("response_cache"), HasSubstr("runtime"),
                          HasSubstr("model_metrics")));
}

TEST(ParseModelConfig, BoundsWhatItReads) {
  expect_refusal(std::string((1 << 20) + 1, ' '), Code::kInvalidArgument, "has 1048577 bytes, at most 1048576");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "optimization { ";
  EXPECT_EQ(refusal(deep).code, Code::kInvalidArgument);
  std::string wrong;
  for (int i = 0; i < 10'000; ++i) wrong += "\x01";
  EXPECT_LT(refusal(wrong).message.size(), 2000U);
}

TEST(FormatModelConfig, ReadsBackToTheSame) {
  const ModelConfig once = must_parse(kOcr);
  const std::string text = format_model_config(once);
  const ModelConfig twice = must_parse(text);
  EXPECT_EQ(format_model_config(twice), text);
  EXPECT_EQ(format_model_config_json(twice), format_model_config_json(once));
  EXPECT_EQ(twice.inputs.at(0).dims, once.inputs.at(0).dims);
  EXPECT_EQ(twice.version_policy.versions, once.version_policy.versions);
  EXPECT_EQ(twice.instance_count, once.instance_count);
  EXPECT_EQ(twice.warmup.at(0).inputs.at("x").dims, once.warmup.at(0).inputs.at("x").dims);
  EXPECT_THAT(text, AllOf(HasSubstr("dims: [3, 48, -1]"), HasSubstr("kind: KIND_CPU"),
                          HasSubstr("preferred_batch_size: [4, 8]")));
}

TEST(FormatModelConfig, SaysZeroBatchSizeExplicitly) {
  const ModelConfig config{.name = "m", .inputs = {{.name = "a", .datatype = DataType::kBytes, .reshape = Shape{}}}};
  const std::string text = format_model_config(config);
  EXPECT_THAT(text, HasSubstr("max_batch_size: 0"));
  EXPECT_THAT(text, HasSubstr("TYPE_STRING"));
  EXPECT_TRUE(must_parse(text).inputs.at(0).reshape);
}

TEST(FormatModelConfig, WritesJsonWithTritonsNames) {
  ModelConfig config{.name = "m", .platform = "onnxruntime_onnx", .backend = "onnxruntime", .max_batch_size = 8};
  config.inputs = {{.name = "a", .datatype = DataType::kFp32, .dims = {3, -1}}};
  config.outputs = {{.name = "b", .datatype = DataType::kBytes, .dims = {1}, .reshape = Shape{}}};
  config.dynamic_batching.emplace().preferred_batch_size = {4};
  config.parameters["k"] = "v";
  EXPECT_EQ(format_model_config_json(config),
            R"({"name":"m","platform":"onnxruntime_onnx","backend":"onnxruntime",)"
            R"("version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,)"
            R"("input":[{"name":"a","data_type":"TYPE_FP32","dims":[3,-1],"optional":false}],)"
            R"("output":[{"name":"b","data_type":"TYPE_STRING","dims":[1],"reshape":{"shape":[]},)"
            R"("label_filename":""}],"instance_group":[{"kind":"KIND_CPU","count":1}],"default_model_filename":"",)"
            R"("dynamic_batching":{"preferred_batch_size":[4],"max_queue_delay_microseconds":0,)"
            R"("preserve_ordering":false,"priority_levels":0,"default_priority_level":0,)"
            R"("default_queue_policy":{"timeout_action":"REJECT","default_timeout_microseconds":0,)"
            R"("allow_timeout_override":false,"max_queue_size":0},"priority_queue_policy":{}},)"
            R"("parameters":{"k":{"string_value":"v"}},"model_warmup":[],)"
            R"("model_transaction_policy":{"decoupled":false}})");
}

}  // namespace
}  // namespace sluice
