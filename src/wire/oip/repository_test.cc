#include "wire/oip/repository.h"

#include <gtest/gtest.h>

#include "wire/oip/statistics.h"

namespace sluice::oip {
namespace {

TEST(RepositoryIndex, ReadsWhatItWrites) {
  const std::vector<IndexEntry> entries = {{"a", "1", "READY", ""}, {"b \"quoted\"", "", "UNAVAILABLE", "no\nfile"}};
  const auto parsed = parse_repository_index(encode_repository_index(entries));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, entries);
}

TEST(RepositoryIndex, RequestsAreNothingOrAnObject) {
  EXPECT_EQ(parse_index_request(""), false);
  EXPECT_EQ(parse_index_request("{}"), false);
  EXPECT_EQ(parse_index_request(R"({"ready":true})"), true);
  EXPECT_EQ(parse_index_request(R"({"ready":"yes"})").error().code, Code::kInvalidArgument);
  EXPECT_EQ(parse_index_request("garbage").error().code, Code::kInvalidArgument);
}

TEST(RepositoryIndex, RefusesWhatIsNotAnArray) {
  EXPECT_EQ(parse_repository_index("{\"name\":1}").error().code, Code::kInvalidArgument);
  EXPECT_EQ(parse_repository_index("[").error().code, Code::kInvalidArgument);
}

TEST(Statistics, CountsAndDurationsReadBack) {
  ModelStatsSnapshot model;
  model.name = "m";
  model.version = "3";
  model.inference_count = 7;
  model.execution_count = 2;
  model.success = {5, 1000};
  model.compute_infer = {2, 800};
  model.batches[4] = {4, {1, 10}, {1, 20}, {1, 30}};
  const auto parsed = parse_statistics(encode_statistics({&model, 1}));
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 1U);
  EXPECT_EQ((*parsed)[0].name, "m");
  EXPECT_EQ((*parsed)[0].inference_count, 7U);
  EXPECT_EQ((*parsed)[0].success.ns, 1000U);
  EXPECT_EQ((*parsed)[0].compute_infer.count, 2U);
  EXPECT_EQ((*parsed)[0].batches.at(4).compute_infer.ns, 20U);
}

}  // namespace
}  // namespace sluice::oip
