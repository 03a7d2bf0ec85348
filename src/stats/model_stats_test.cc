#include "stats/model_stats.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono::microseconds;

Time at(int us) { return Time{} + microseconds(us); }

const HdrHistogram& stage(const ModelStatsSnapshot& snapshot, Stage which) {
  return *snapshot.stages[static_cast<std::size_t>(which)];
}

TEST(ModelStats, CountsASuccessInEveryStageItReached) {
  ModelStats stats("ocr", "3");
  stats.record_success({.received = at(100), .queued = at(110), .taken = at(140), .compute_start = at(145),
                        .compute_end = at(245), .encoded = at(250)}, 1'700'000'000'123);
  const ModelStatsSnapshot got = stats.snapshot();
  EXPECT_EQ(got.name, "ocr");
  EXPECT_EQ(got.version, "3");
  EXPECT_EQ(got.last_inference_ms, 1'700'000'000'123U);
  EXPECT_EQ(got.success.count, 1U);
  EXPECT_EQ(got.success.ns, 150'000U);
  EXPECT_EQ(got.queue.ns, 30'000U);
  EXPECT_EQ(got.compute_input.ns, 5'000U);
  EXPECT_EQ(got.compute_infer.ns, 100'000U);
  EXPECT_EQ(got.compute_output.ns, 5'000U);
  EXPECT_EQ(stage(got, Stage::kWireIn).sum(), 10'000);
  EXPECT_EQ(stage(got, Stage::kQueue).sum(), 30'000);
  EXPECT_EQ(stage(got, Stage::kAssembly).sum(), 5'000);
  EXPECT_EQ(stage(got, Stage::kCompute).sum(), 100'000);
  EXPECT_EQ(stage(got, Stage::kWireOut).sum(), 5'000);
  EXPECT_EQ(stage(got, Stage::kTotal).sum(), 150'000);
}

TEST(ModelStats, LeavesOutStagesThatWereNotReached) {
  ModelStats stats("ocr", "1");
  stats.record_success({.received = at(100), .queued = at(110), .encoded = at(150)}, 1);
  const ModelStatsSnapshot got = stats.snapshot();
  EXPECT_EQ(stage(got, Stage::kWireIn).count(), 1);
  EXPECT_EQ(stage(got, Stage::kQueue).count(), 0);
  EXPECT_EQ(stage(got, Stage::kTotal).count(), 1);
  EXPECT_EQ(got.queue.count, 0U);
  EXPECT_EQ(got.success.count, 1U);
}

TEST(ModelStats, CountsFailuresByReason) {
  ModelStats stats("ocr", "1");
  stats.record_failure(FailureReason::kRejected, microseconds(5));
  stats.record_failure(FailureReason::kBackend, microseconds(7));
  stats.record_failure(FailureReason::kBackend, microseconds(8));
  const ModelStatsSnapshot got = stats.snapshot();
  EXPECT_EQ(got.failures, (std::array<std::uint64_t, 4>{1, 0, 2, 0}));
  EXPECT_EQ(got.fail.count, 3U);
  EXPECT_EQ(got.fail.ns, 20'000U);
  EXPECT_EQ(got.success.count, 0U);
}

TEST(ModelStats, CountsBatchesBySizeAndByTheReasonTheyWereClosed) {
  ModelStats stats("ocr", "1");
  stats.record_batch(4, CloseReason::kFull, microseconds(1), microseconds(10), microseconds(2));
  stats.record_batch(4, CloseReason::kDelay, microseconds(3), microseconds(20), microseconds(4));
  stats.record_batch(1, CloseReason::kInstanceFree, microseconds(1), microseconds(5), microseconds(1));
  const ModelStatsSnapshot got = stats.snapshot();
  EXPECT_EQ(got.inference_count, 9U);
  EXPECT_EQ(got.execution_count, 3U);
  EXPECT_EQ(got.close_reasons, (std::array<std::uint64_t, 6>{1, 0, 1, 1, 0, 0}));
  ASSERT_EQ(got.batches.size(), 2U);
  EXPECT_EQ(got.batches.at(4).batch_size, 4U);
  EXPECT_EQ(got.batches.at(4).compute_infer.count, 2U);
  EXPECT_EQ(got.batches.at(4).compute_infer.ns, 30'000U);
  EXPECT_EQ(got.batches.at(4).compute_input.ns, 4'000U);
  EXPECT_EQ(got.batches.at(1).compute_output.ns, 1'000U);
}

TEST(ModelStats, TellsWhatIsPendingAndLoaded) {
  ModelStats stats("ocr", "1");
  stats.set_pending(12);
  stats.set_load(1.5, 1 << 20);
  const ModelStatsSnapshot got = stats.snapshot();
  EXPECT_EQ(got.pending, 12);
  EXPECT_EQ(got.load_seconds, 1.5);
  EXPECT_EQ(got.memory_bytes, 1U << 20);
}

}  // namespace
}  // namespace sluice
