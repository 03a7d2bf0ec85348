#include "model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ModelSignature image_signature() {
  return {.inputs = {{"image", DataType::kFp32, {-1, 3, -1, -1}}, {"scale", DataType::kFp32, {-1, 1}}},
          .outputs = {{"text", DataType::kBytes, {-1, -1}}}};
}

ModelSignature fixed_signature() {
  return {.inputs = {{"x", DataType::kInt64, {1, 16}}}, .outputs = {{"y", DataType::kInt64, {}}}};
}

ModelConfig must_complete(ModelConfig config, const ModelSignature& signature) {
  auto completed = complete_model_config(std::move(config), signature);
  EXPECT_TRUE(completed) << completed.error().message;
  return completed ? std::move(*completed) : ModelConfig{};
}

std::string refusal(ModelConfig config, const ModelSignature& signature) {
  const auto completed = complete_model_config(std::move(config), signature);
  if (completed) return "accepted";
  EXPECT_EQ(completed.error().code, Code::kInvalidArgument);
  return completed.error().message;
}

ModelConfig batched(std::int32_t max_batch_size) {
  return {.name = "m", .max_batch_size = max_batch_size, .max_batch_size_given = true};
}

TEST(CompleteModelConfig, TakesEverythingFromTheModelWhenNothingIsSaid) {
  const ModelConfig config = must_complete({.name = "m"}, image_signature());
  EXPECT_EQ(config.max_batch_size, kAutoMaxBatchSize);
  ASSERT_TRUE(config.dynamic_batching);
  EXPECT_EQ(config.dynamic_batching->max_queue_delay_us, 0U);
  ASSERT_EQ(config.inputs.size(), 2U);
  EXPECT_EQ(config.inputs[0].name, "image");
  EXPECT_EQ(config.inputs[0].datatype, DataType::kFp32);
  EXPECT_THAT(config.inputs[0].dims, ElementsAre(3, -1, -1));
  EXPECT_THAT(config.outputs.at(0).dims, ElementsAre(-1));
}

TEST(CompleteModelConfig, DoesNotBatchWhereAFirstDimensionIsFixed) {
  const ModelConfig config = must_complete({.name = "m"}, fixed_signature());
  EXPECT_EQ(config.max_batch_size, 0);
  EXPECT_FALSE(config.dynamic_batching);
  EXPECT_THAT(config.inputs.at(0).dims, ElementsAre(1, 16));
  EXPECT_TRUE(config.outputs.at(0).dims.empty());
  EXPECT_THAT(refusal(batched(8), fixed_signature()),
              AllOf(HasSubstr("max_batch_size is 8"), HasSubstr("'x'"), HasSubstr("[1,16]")));
}

TEST(CompleteModelConfig, KeepsABatchSizeThatIsGiven) {
  EXPECT_EQ(must_complete(batched(1), image_signature()).max_batch_size, 1);
  EXPECT_FALSE(must_complete(batched(1), image_signature()).dynamic_batching);
  EXPECT_TRUE(must_complete(batched(2), image_signature()).dynamic_batching);
  const ModelConfig off = must_complete(batched(0), image_signature());
  EXPECT_EQ(off.max_batch_size, 0);
  EXPECT_THAT(off.inputs.at(0).dims, ElementsAre(-1, 3, -1, -1));
  EXPECT_THAT(refusal(batched(-1), image_signature()), HasSubstr("max_batch_size is -1"));
}

TEST(CompleteModelConfig, ReadsFromTheDimsWhetherABatchIsMeant) {
  ModelConfig without{.name = "m", .inputs = {{.name = "image", .dims = {3, 32, -1}}}};
  EXPECT_EQ(must_complete(without, image_signature()).max_batch_size, kAutoMaxBatchSize);
  ModelConfig with{.name = "m", .inputs = {{.name = "image", .dims = {-1, 3, 32, -1}}}};
  const ModelConfig config = must_complete(with, image_signature());
  EXPECT_EQ(config.max_batch_size, 0);
  EXPECT_THAT(config.inputs.at(0).dims, ElementsAre(-1, 3, 32, -1));
  EXPECT_THAT(config.inputs.at(1).dims, ElementsAre(-1, 1));
}

TEST(CompleteModelConfig, PutsTensorsIntoTheModelsOrder) {
  ModelConfig config = batched(4);
  config.inputs = {{.name = "scale", .optional = true}, {.name = "image", .dims = {3, 48, -1}}};
  const ModelConfig completed = must_complete(config, image_signature());
  ASSERT_EQ(completed.inputs.size(), 2U);
  EXPECT_EQ(completed.inputs[0].name, "image");
  EXPECT_THAT(completed.inputs[0].dims, ElementsAre(3, 48, -1));
  EXPECT_EQ(completed.inputs[1].name, "scale");
  EXPECT_TRUE(completed.inputs[1].optional);
  EXPECT_EQ(completed.inputs[1].datatype, DataType::kFp32);
}

TEST(CompleteModelConfig, RefusesWhatTheModelDoesNotHave) {
  ModelConfig config = batched(4);
  config.inputs = {{.name = "picture"}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("no input 'picture', it has: image, scale"));
  config.inputs = {{.name = "image", .datatype = DataType::kInt8}};
  EXPECT_THAT(refusal(config, image_signature()),
              HasSubstr("'image' has datatype FP32 in the model, the configuration says INT8"));
  config.inputs = {{.name = "image", .dims = {4, 1, 1}}};
  EXPECT_THAT(refusal(config, image_signature()), AllOf(HasSubstr("[-1,3,-1,-1]"), HasSubstr("[-1,4,1,1]")));
  config.inputs = {{.name = "image", .dims = {-1, 1, 1}}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("[-1,-1,1,1]"));
  config.inputs = {{.name = "image", .dims = {3, 1}}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("[-1,3,1]"));
  config.inputs = {{.name = "image"}, {.name = "image"}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("'image' is configured twice"));
  config.inputs = {};
  config.outputs = {{.name = "image"}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("no output 'image', it has: text"));
}

TEST(CompleteModelConfig, ChecksAReshapeAgainstTheModel) {
  const ModelSignature signature{.inputs = {{"x", DataType::kFp32, {-1}}},
                                 .outputs = {{"y", DataType::kFp32, {-1, 4}}}};
  ModelConfig config = batched(4);
  config.inputs = {{.name = "x", .dims = {1}, .reshape = Shape{}}};
  config.outputs = {{.name = "y", .dims = {2, 2}, .reshape = Shape{4}}};
  const ModelConfig completed = must_complete(config, signature);
  EXPECT_THAT(completed.inputs.at(0).dims, ElementsAre(1));
  EXPECT_THAT(model_metadata(completed, {"1"}).outputs.at(0).shape, ElementsAre(-1, 2, 2));
  config.outputs = {{.name = "y", .dims = {2, 3}, .reshape = Shape{4}}};
  EXPECT_THAT(refusal(config, signature), AllOf(HasSubstr("dims [2,3] and reshape [4]"), HasSubstr("6 and 4")));
  config.outputs = {{.name = "y", .dims = {2, 2}, .reshape = Shape{2, 2}}};
  EXPECT_THAT(refusal(config, signature), HasSubstr("[-1,2,2]"));
}

TEST(CompleteModelConfig, ChecksDynamicBatching) {
  ModelConfig config = batched(8);
  config.dynamic_batching.emplace().preferred_batch_size = {4, 8};
  EXPECT_THAT(must_complete(config, image_signature()).dynamic_batching->preferred_batch_size, ElementsAre(4, 8));
  config.dynamic_batching->preferred_batch_size = {9};
  EXPECT_THAT(refusal(config, image_signature()), AllOf(HasSubstr("has 9"), HasSubstr("max_batch_size (8)")));
  config.dynamic_batching->preferred_batch_size = {0};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("has 0"));
  config.dynamic_batching->preferred_batch_size = {};
  config.dynamic_batching->priority_levels = 2;
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("default_priority_level is 0"));
  config.dynamic_batching->default_priority_level = 2;
  config.dynamic_batching->priority_queue_policy[2];
  EXPECT_TRUE(complete_model_config(config, image_signature()));
  config.dynamic_batching->priority_queue_policy[3];
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("level 3"));
}

TEST(CompleteModelConfig, WarnsThatBatchingNeedsABatchDimension) {
  ModelConfig config = batched(0);
  config.dynamic_batching.emplace();
  const ModelConfig completed = must_complete(config, image_signature());
  EXPECT_FALSE(completed.dynamic_batching);
  EXPECT_THAT(completed.warnings, ElementsAre(HasSubstr("dynamic_batching")));
}

TEST(CompleteModelConfig, ChecksWarmUps) {
  ModelConfig config = batched(8);
  config.warmup = {{.name = "w", .batch_size = 8, .inputs = {{"scale", {DataType::kFp32, {1}}}}}};
  EXPECT_TRUE(complete_model_config(config, image_signature()));
  config.warmup[0].batch_size = 9;
  EXPECT_THAT(refusal(config, image_signature()), AllOf(HasSubstr("batch_size 9"), HasSubstr("max_batch_size is 8")));
  config.warmup[0] = {.name = "w", .inputs = {{"other", {DataType::kFp32, {1}}}}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("no input 'other'"));
  config.warmup[0] = {.name = "w", .inputs = {{"scale", {DataType::kFp64, {1}}}}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("datatype FP64, the model expects FP32"));
  config.warmup[0] = {.name = "w", .inputs = {{"scale", {DataType::kFp32, {2}}}}};
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("dims [2], the model expects [1]"));
}

TEST(CompleteModelConfig, ReadsItsOwnParameter) {
  ModelConfig config{.name = "m", .parameters = {{"sluice.inline", "true"}}};
  EXPECT_TRUE(must_complete(config, image_signature()).run_inline);
  config.parameters["sluice.inline"] = "yes";
  EXPECT_THAT(refusal(config, image_signature()), HasSubstr("'sluice.inline' is 'yes'"));
}

TEST(CompleteModelConfig, IsIdempotent) {
  const ModelConfig once = must_complete({.name = "m"}, image_signature());
  const ModelConfig twice = must_complete(once, image_signature());
  EXPECT_EQ(once.max_batch_size, twice.max_batch_size);
  EXPECT_EQ(once.inputs.at(0).dims, twice.inputs.at(0).dims);
  EXPECT_EQ(once.dynamic_batching.has_value(), twice.dynamic_batching.has_value());
}

TEST(ModelMetadata, HasTheBatchDimensionWhereThereIsOne) {
  const ModelConfig config = must_complete({.name = "m", .platform = "onnxruntime_onnx"}, image_signature());
  const ModelMetadata metadata = model_metadata(config, {"1", "3"});
  EXPECT_EQ(metadata.name, "m");
  EXPECT_EQ(metadata.platform, "onnxruntime_onnx");
  EXPECT_THAT(metadata.versions, ElementsAre("1", "3"));
  EXPECT_THAT(metadata.inputs.at(0).shape, ElementsAre(-1, 3, -1, -1));
  const ModelConfig fixed = must_complete({.name = "m"}, fixed_signature());
  EXPECT_THAT(model_metadata(fixed, {}).inputs.at(0).shape, ElementsAre(1, 16));
}

}  // namespace
}  // namespace sluice
