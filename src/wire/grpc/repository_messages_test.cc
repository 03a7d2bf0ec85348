#include "wire/grpc/repository_messages.h"

#include <gtest/gtest.h>

#include "inference.pb.h"
#include "wire/config/pbtxt.h"
#include "wire/grpc/statistics.h"

namespace sluice::grpc_wire {
namespace {

TEST(ModelConfigMessage, SaysWhatTheTextSays) {
  const auto config = parse_model_config(R"(
    name: "m" backend: "identity" max_batch_size: 8
    input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }
    output { name: "y" data_type: TYPE_STRING dims: 1 }
    dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
    parameters { key: "k" value { string_value: "v \"quoted\"" } })");
  ASSERT_TRUE(config) << config.error().message;
  const auto message = encode_model_config(*config);
  ASSERT_TRUE(message) << message.error().message;
  inference::ModelConfigResponse response;
  ASSERT_TRUE(response.ParseFromString(*message));
  EXPECT_EQ(response.config().name(), "m");
  EXPECT_EQ(response.config().max_batch_size(), 8);
  EXPECT_EQ(response.config().input(0).dims(1), 3);
  EXPECT_EQ(response.config().output(0).data_type(), inference::TYPE_STRING);
  EXPECT_EQ(response.config().dynamic_batching().preferred_batch_size(1), 8);
  EXPECT_EQ(response.config().parameters().at("k").string_value(), "v \"quoted\"");
}

TEST(RepositoryIndexMessage, CarriesEveryEntry) {
  const std::vector<oip::IndexEntry> entries = {{"a", "1", "READY", ""}, {"b", "", "UNAVAILABLE", "no file"}};
  inference::RepositoryIndexResponse response;
  ASSERT_TRUE(response.ParseFromString(grpc_wire::encode_repository_index(entries)));
  ASSERT_EQ(response.models_size(), 2);
  EXPECT_EQ(response.models(0).state(), "READY");
  EXPECT_EQ(response.models(1).reason(), "no file");
  EXPECT_EQ(parse_index_request(""), false);
  EXPECT_EQ(parse_index_request("\x10\x01"), true);
  EXPECT_EQ(parse_index_request("\xff").error().code, Code::kInvalidArgument);
}

TEST(StatisticsMessage, CarriesCountsAndDurations) {
  ModelStatsSnapshot model;
  model.name = "m";
  model.inference_count = 7;
  model.queue = {5, 1000};
  model.batches[4] = {4, {1, 10}, {1, 20}, {1, 30}};
  inference::ModelStatisticsResponse response;
  ASSERT_TRUE(response.ParseFromString(encode_model_statistics({&model, 1})));
  ASSERT_EQ(response.model_stats_size(), 1);
  EXPECT_EQ(response.model_stats(0).inference_count(), 7U);
  EXPECT_EQ(response.model_stats(0).inference_stats().queue().ns(), 1000U);
  EXPECT_EQ(response.model_stats(0).batch_stats(0).compute_infer().ns(), 20U);
}

}  // namespace
}  // namespace sluice::grpc_wire
