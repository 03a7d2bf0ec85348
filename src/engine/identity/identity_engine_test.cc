#include "engine/identity/identity_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "io/sim/sim_world.h"

namespace sluice::engine {
namespace {

using ::testing::HasSubstr;

class Identity : public ::testing::Test {
 protected:
  Identity() : clock_(world_.make_loop("clock")), pool_({.threads = 2, .loader_threads = 1}) {}

  static ModelConfig echo_config() {
    ModelConfig config;
    config.name = "echo";
    config.backend = "identity";
    config.max_batch_size = 8;
    config.inputs = {{"INPUT0", DataType::kUint8, {2}, {}, false, ""},
                     {"INPUT1", DataType::kBytes, {1}, {}, false, ""}};
    config.outputs = {{"FIRST", DataType::kUint8, {2}, {}, false, ""},
                      {"SECOND", DataType::kBytes, {1}, {}, false, ""}};
    return config;
  }

  Tensor make_tensor(DataType type, Shape shape, std::string_view bytes) {
    BufferRef buffer = arena_.allocate(bytes.size()).value();
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return {type, std::move(shape), buffer.bytes(), buffer};
  }

  // Requests of one row each, "<letter>0" and an element of one letter.
  Batch make_batch(std::string_view letters) {
    Batch batch;
    for (const char letter : letters) {
      const std::string element = std::string("\1\0\0\0", 4) + letter;
      batch.items.push_back({{make_tensor(DataType::kUint8, {1, 2}, std::string(1, letter) + "0"),
                              make_tensor(DataType::kBytes, {1, 1}, element)},
                             1});
      ++batch.rows;
    }
    return batch;
  }

  Result<BatchOutput> run(BatchModel& model, Batch batch) {
    std::promise<Result<BatchOutput>> promise;
    auto future = promise.get_future();
    model.submit(std::move(batch), [&](Result<BatchOutput> output) { promise.set_value(std::move(output)); });
    return future.get();
  }

  io::SimWorld world_{1};
  io::Loop& clock_;
  Arena arena_{Arena::Options{}};
  io::ComputePool pool_;
  std::unique_ptr<Engine> engine_ = make_identity_engine({pool_, arena_, clock_});
};

TEST_F(Identity, SignatureComesFromTheConfiguration) {
  const auto signature = engine_->inspect({"", echo_config()});
  ASSERT_TRUE(signature) << signature.error().message;
  EXPECT_EQ(signature->inputs[0].shape, (Shape{-1, 2}));
  EXPECT_EQ(signature->outputs[1].name, "SECOND");
  EXPECT_EQ(signature->outputs[1].datatype, DataType::kBytes);
}

TEST_F(Identity, OutputsThatAreLeftOutAreNumbered) {
  ModelConfig config = echo_config();
  config.outputs.clear();
  config.max_batch_size = 0;
  const auto signature = engine_->inspect({"", config});
  ASSERT_TRUE(signature) << signature.error().message;
  EXPECT_EQ(signature->outputs[1].name, "OUTPUT1");
  EXPECT_EQ(signature->outputs[1].shape, (Shape{1}));
}

TEST_F(Identity, AConfigurationThatIsNoEchoIsRefused) {
  ModelConfig config = echo_config();
  config.outputs[1].datatype = DataType::kFp32;
  const auto datatype = engine_->inspect({"", config});
  ASSERT_FALSE(datatype);
  EXPECT_EQ(datatype.error().code, Code::kInvalidArgument);
  EXPECT_THAT(datatype.error().message, HasSubstr("SECOND"));
  config.outputs.pop_back();
  EXPECT_FALSE(engine_->load({"", config}));
  config.inputs.clear();
  EXPECT_FALSE(engine_->load({"", config}));
  config = echo_config();
  config.parameters["busy_us"] = "1e3";
  const auto busy = engine_->load({"", config});
  ASSERT_FALSE(busy);
  EXPECT_THAT(busy.error().message, HasSubstr("busy_us is '1e3'"));
}

TEST_F(Identity, OneRequestComesBackInItsOwnBuffer) {
  const auto model = engine_->load({"", echo_config()}).value();
  EXPECT_TRUE(model->runs_inline());
  Batch batch = make_batch("a");
  const std::byte* address = batch.items[0].inputs[0].data.data();
  const auto output = run(*model, std::move(batch));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].data.data(), address);
}

TEST_F(Identity, SeveralRequestsComeBackInOrder) {
  const auto model = engine_->load({"", echo_config()}).value();
  const auto output = run(*model, make_batch("abc"));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(as_text(output->outputs[0].data), "a0b0c0");
  EXPECT_EQ(output->outputs[1].shape, (Shape{3, 1}));
  EXPECT_TRUE(check_tensor_data(output->outputs[1]));
}

TEST_F(Identity, RunsOnThePoolWhenToldTo) {
  ModelConfig config = echo_config();
  config.parameters["sluice.inline"] = "false";
  config.parameters["busy_us"] = "50";
  config.instance_count = 2;
  auto model = engine_->load({"", config}).value();
  EXPECT_FALSE(model->runs_inline());
  std::vector<std::future<Result<BatchOutput>>> answers;
  for (int i = 0; i < 16; ++i) {
    auto promise = std::make_shared<std::promise<Result<BatchOutput>>>();
    answers.push_back(promise->get_future());
    model->submit(make_batch("xy"), [promise](Result<BatchOutput> output) { promise->set_value(std::move(output)); });
  }
  model.reset();  // batches in flight keep it alive
  for (auto& answer : answers) {
    const auto output = answer.get();
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(as_text(output->outputs[0].data), "x0y0");
  }
}

}  // namespace
}  // namespace sluice::engine
