#include "serving/served_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/sim/sim_world.h"
#include "serving/test_model.h"

namespace sluice::serving {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelTensorConfig tensor_config(std::string name, DataType type, Shape dims) {
  return {.name = std::move(name), .datatype = type, .dims = std::move(dims)};
}

// Two inputs (one with a variable dimension), an optional third, two outputs, batches of up to 4.
ModelConfig two_inputs() {
  ModelConfig config;
  config.name = "m";
  config.max_batch_size = 4;
  config.inputs = {tensor_config("a", DataType::kInt32, {2}), tensor_config("b", DataType::kFp32, {-1, 3}),
                   tensor_config("c", DataType::kInt8, {1})};
  config.inputs[2].optional = true;
  config.outputs = {tensor_config("x", DataType::kInt32, {2}), tensor_config("y", DataType::kFp32, {-1, 3})};
  config.dynamic_batching.emplace();
  return config;
}

InputTensor input(std::string name, DataType type, Shape shape) {
  const std::size_t size = element_size(type) * static_cast<std::size_t>(element_count(shape).value());
  return {.name = std::move(name), .tensor = tensor_of(type, std::move(shape), std::string(size, 'z'))};
}

InferRequest good_request(std::int64_t rows = 1, std::int64_t width = 5) {
  InferRequest request{.model_name = "m", .id = "7"};
  request.inputs.push_back(input("a", DataType::kInt32, {rows, 2}));
  request.inputs.push_back(input("b", DataType::kFp32, {rows, width, 3}));
  return request;
}

class ServedModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<ServedModel> serve(ModelConfig config) {
    auto model = std::make_shared<FunctionModel>(loop_, nullptr);
    return std::make_unique<ServedModel>(std::move(config), "2", std::move(model), loop_);
  }
  Result<PreparedRequest> prepare(InferRequest request) {
    return model_->prepare(std::move(request), Time{microseconds(5)}, Time{microseconds(10)});
  }
  std::string error(InferRequest request) {
    const auto prepared = prepare(std::move(request));
    if (prepared) return "no error";
    EXPECT_EQ(prepared.error().code, Code::kInvalidArgument);
    return prepared.error().message;
  }

  io::SimWorld world_{1};
  io::Loop& loop_ = world_.make_loop("loop");
  std::unique_ptr<ServedModel> model_ = serve(two_inputs());
};

TEST_F(ServedModelTest, MetadataIsOfThisVersion) {
  EXPECT_THAT(model_->metadata().versions, ElementsAre("2"));
  EXPECT_THAT(model_->metadata().inputs[1].shape, ElementsAre(-1, -1, 3));
  EXPECT_EQ(model_->stats()->version(), "2");
}

TEST_F(ServedModelTest, WhatWouldChangeTheAnswerAndIsNotThereIsRefused) {
  InferRequest classified = good_request();
  classified.outputs.push_back({.name = "x", .classification = 3});
  EXPECT_EQ(prepare(std::move(classified)).error().code, Code::kUnimplemented);
  InferRequest sequence = good_request();
  sequence.parameters.push_back({"sequence_id", std::int64_t{7}});
  EXPECT_EQ(prepare(std::move(sequence)).error().code, Code::kUnimplemented);
  InferRequest no_sequence = good_request();
  no_sequence.parameters = {{"sequence_id", std::int64_t{0}}, {"sequence_start", false}, {"other", 1.5}};
  EXPECT_TRUE(prepare(std::move(no_sequence)));
}

TEST_F(ServedModelTest, AGoodRequest) {
  const auto prepared = prepare(good_request(3));
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->item.rows, 3);
  ASSERT_EQ(prepared->item.inputs.size(), 3u);
  EXPECT_THAT(prepared->item.inputs[1].shape, ElementsAre(3, 5, 3));
  EXPECT_EQ(prepared->item.inputs[2].datatype, DataType::kInvalid);
  EXPECT_THAT(prepared->outputs, IsEmpty());
  EXPECT_EQ(prepared->id, "7");
  EXPECT_EQ(prepared->deadline, kNever);
  EXPECT_EQ(prepared->times.received, Time{microseconds(5)});
}

TEST_F(ServedModelTest, InputsComeInAnyOrder) {
  InferRequest request = good_request();
  std::swap(request.inputs[0], request.inputs[1]);
  request.inputs.insert(request.inputs.begin(), input("c", DataType::kInt8, {1, 1}));
  const auto prepared = prepare(std::move(request));
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->item.inputs[0].datatype, DataType::kInt32);
  EXPECT_EQ(prepared->item.inputs[1].datatype, DataType::kFp32);
  EXPECT_EQ(prepared->item.inputs[2].datatype, DataType::kInt8);
}

TEST_F(ServedModelTest, OutputsByNameInTheOrderAskedFor) {
  InferRequest request = good_request();
  request.outputs = {{.name = "y"}, {.name = "x"}};
  EXPECT_THAT(prepare(std::move(request))->outputs, ElementsAre(1, 0));
}

TEST_F(ServedModelTest, UnknownInput) {
  InferRequest request = good_request();
  request.inputs[1].name = "bb";
  EXPECT_EQ(error(std::move(request)), "model 'm' has no input 'bb': expected 'a', 'b', 'c'");
}

TEST_F(ServedModelTest, MissingInput) {
  InferRequest request = good_request();
  request.inputs.pop_back();
  EXPECT_EQ(error(std::move(request)), "input 'b' is missing: model 'm' expects 'a', 'b', 'c'");
  EXPECT_THAT(error(InferRequest{}), HasSubstr("input 'a' is missing"));
}

TEST_F(ServedModelTest, InputGivenTwice) {
  InferRequest request = good_request();
  request.inputs.push_back(input("a", DataType::kInt32, {1, 2}));
  EXPECT_EQ(error(std::move(request)), "input 'a' is given twice");
}

TEST_F(ServedModelTest, WrongDatatype) {
  InferRequest request = good_request();
  request.inputs[0] = input("a", DataType::kInt64, {1, 2});
  EXPECT_EQ(error(std::move(request)), "input 'a' has datatype INT64: model 'm' expects INT32");
}

TEST_F(ServedModelTest, WrongShapes) {
  for (const Shape& shape : {Shape{1, 3}, Shape{2}, Shape{1, 2, 1}, Shape{}}) {
    InferRequest request = good_request();
    request.inputs[0] = input("a", DataType::kInt32, shape);
    EXPECT_EQ(error(std::move(request)), "input 'a' has shape " + shape_to_string(shape) +
                                             ": model 'm' expects [-1,2] (the first dimension is the batch)");
  }
}

TEST_F(ServedModelTest, WrongBatch) {
  EXPECT_EQ(error(good_request(5)),
            "input 'a' has shape [5,2], a batch of 5: model 'm' takes 1 to 4 (max_batch_size)");
  EXPECT_THAT(error(good_request(0)), HasSubstr("a batch of 0"));
  InferRequest request = good_request(2);
  request.inputs[1] = input("b", DataType::kFp32, {3, 5, 3});
  EXPECT_EQ(error(std::move(request)), "input 'b' has a batch of 3, input 'a' one of 2: expected the same");
}

TEST_F(ServedModelTest, WrongOutputs) {
  InferRequest request = good_request();
  request.outputs = {{.name = "q"}};
  EXPECT_EQ(error(std::move(request)), "model 'm' has no output 'q': expected 'x', 'y'");
  request = good_request();
  request.outputs = {{.name = "x"}, {.name = "x"}};
  EXPECT_EQ(error(std::move(request)), "output 'x' is asked for twice");
}

TEST_F(ServedModelTest, ShapeKeysTellWhatMayShareABatch) {
  const auto key = [this](InferRequest request) { return prepare(std::move(request))->shape_key; };
  const std::uint64_t same = key(good_request(1, 5));
  EXPECT_EQ(key(good_request(3, 5)), same);   // rows do not count
  EXPECT_NE(key(good_request(1, 6)), same);
  InferRequest with_optional = good_request(1, 5);
  with_optional.inputs.push_back(input("c", DataType::kInt8, {1, 1}));
  EXPECT_NE(key(std::move(with_optional)), same);
}

TEST_F(ServedModelTest, WithoutABatchDimensionShapesAreTheModels) {
  ModelConfig config = two_inputs();
  config.max_batch_size = 0;
  config.dynamic_batching.reset();
  config.inputs = {tensor_config("a", DataType::kInt32, {7, -1})};
  model_ = serve(std::move(config));
  InferRequest request;
  request.inputs.push_back(input("a", DataType::kInt32, {7, 9}));
  const auto prepared = prepare(std::move(request));
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->item.rows, 1);
  request.inputs.push_back(input("a", DataType::kInt32, {1, 7, 9}));
  EXPECT_EQ(error(std::move(request)), "input 'a' has shape [1,7,9]: model 'm' expects [7,-1]");
}

TEST_F(ServedModelTest, AReshapedInputReachesTheModelInItsOwnShape) {
  ModelConfig config = two_inputs();
  config.inputs = {tensor_config("a", DataType::kInt32, {-1, 2})};
  config.inputs[0].reshape = Shape{1, -1, 2};
  model_ = serve(std::move(config));
  InferRequest request;
  request.inputs.push_back(input("a", DataType::kInt32, {3, 9, 2}));
  EXPECT_THAT(prepare(std::move(request))->item.inputs[0].shape, ElementsAre(3, 1, 9, 2));
}

TEST_F(ServedModelTest, AReshapedOutputIsShownInTheProtocolsShape) {
  ModelConfig config;
  config.name = "m";
  config.inputs = {tensor_config("a", DataType::kInt32, {2, 3})};
  config.outputs = {tensor_config("x", DataType::kInt32, {6})};
  config.outputs[0].reshape = Shape{2, 3};
  model_ = serve(std::move(config));
  InferRequest request;
  request.inputs.push_back(input("a", DataType::kInt32, {2, 3}));
  auto outcome = std::make_shared<Outcome>();
  model_->queue().submit(std::move(*prepare(std::move(request))), loop_, std::make_unique<OutcomeSink>(outcome, loop_));
  EXPECT_THAT(outcome->output().shape, ElementsAre(6));
}

TEST_F(ServedModelTest, TheQueuePolicyBoundsTheTimeInTheQueue) {
  const auto deadline_us = [this](QueuePolicy policy, std::uint64_t timeout_us) {
    ModelConfig config = two_inputs();
    config.dynamic_batching->default_queue_policy = policy;
    model_ = serve(std::move(config));
    InferRequest request = good_request();
    request.timeout_us = timeout_us;
    const Time deadline = prepare(std::move(request))->deadline;
    return deadline == kNever ? -1 : to_ns(deadline.time_since_epoch()) / 1000 - 10;
  };
  const auto kDelay = QueuePolicy::TimeoutAction::kDelay;
  EXPECT_EQ(deadline_us({}, 0), -1);
  EXPECT_EQ(deadline_us({}, 50), -1);  // no override allowed
  EXPECT_EQ(deadline_us({.default_timeout_us = 100}, 0), 100);
  EXPECT_EQ(deadline_us({.default_timeout_us = 100}, 50), 100);
  EXPECT_EQ(deadline_us({.default_timeout_us = 100, .allow_timeout_override = true}, 50), 50);
  EXPECT_EQ(deadline_us({.default_timeout_us = 100, .allow_timeout_override = true}, 500), 100);  // never longer
  EXPECT_EQ(deadline_us({.allow_timeout_override = true}, 500), 500);
  EXPECT_EQ(deadline_us({.allow_timeout_override = true}, UINT64_MAX), -1);
  EXPECT_EQ(deadline_us({.timeout_action = kDelay, .default_timeout_us = 100}, 0), -1);
}

TEST_F(ServedModelTest, PriorityLevelsAndTheirPolicies) {
  ModelConfig config = two_inputs();
  config.dynamic_batching->priority_levels = 3;
  config.dynamic_batching->default_priority_level = 2;
  config.dynamic_batching->priority_queue_policy[1] = {.default_timeout_us = 30};
  model_ = serve(std::move(config));
  const auto with_priority = [this](std::uint64_t priority) {
    InferRequest request = good_request();
    request.priority = priority;
    return *prepare(std::move(request));
  };
  EXPECT_EQ(with_priority(1).priority, 0u);
  EXPECT_EQ(with_priority(3).priority, 2u);
  EXPECT_EQ(with_priority(0).priority, 1u);   // the default
  EXPECT_EQ(with_priority(99).priority, 1u);
  EXPECT_EQ(with_priority(1).deadline, Time{microseconds(40)});
  EXPECT_EQ(with_priority(2).deadline, kNever);
}

TEST_F(ServedModelTest, TheQueueIsBoundedByDefaultAndByThePolicy) {
  ModelConfig config = two_inputs();
  config.dynamic_batching->default_queue_policy.max_queue_size = 1;
  config.dynamic_batching->max_queue_delay_us = 1'000'000;
  model_ = serve(std::move(config));
  const auto send = [this] {
    auto outcome = std::make_shared<Outcome>();
    model_->queue().submit(std::move(*prepare(good_request())), loop_, std::make_unique<OutcomeSink>(outcome, loop_));
    return outcome;
  };
  EXPECT_FALSE(send()->terminal.has_value());  // waits for the delay
  EXPECT_EQ(send()->code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace sluice::serving
