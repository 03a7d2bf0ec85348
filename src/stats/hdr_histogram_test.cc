#include "stats/hdr_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

TEST(HdrLayout, HasTheKnownSizeForAnHourOfMicroseconds) {
  const HdrLayout layout({.lowest = 1, .highest = 3'600'000'000, .significant_digits = 3});
  EXPECT_EQ(layout.sub_bucket_count(), 2048);
  EXPECT_EQ(layout.bucket_count(), 22);
  EXPECT_EQ(layout.counts(), 23552U);
}

TEST(HdrLayout, PutsValuesAtTheKnownIndices) {
  const HdrLayout layout({.lowest = 1, .highest = 3'600'000'000, .significant_digits = 3});
  EXPECT_EQ(layout.index_of(0), 0U);
  EXPECT_EQ(layout.index_of(2047), 2047U);
  EXPECT_EQ(layout.index_of(2048), 2048U);
  EXPECT_EQ(layout.index_of(4096), 3072U);
  EXPECT_EQ(layout.index_of(10007), 4322U);
  EXPECT_EQ(layout.index_of(1'000'000), 11169U);
  EXPECT_EQ(layout.index_of(3'600'000'000), 23220U);
  EXPECT_EQ(layout.index_of(INT64_MAX), 23551U);
  EXPECT_EQ(layout.index_of(-5), 0U);
}

TEST(HdrLayout, BucketsJoinWithoutGapAndAreAsNarrowAsPromised) {
  for (const int digits : {1, 2, 3}) {
    for (const std::int64_t lowest : {1, 1000}) {
      const HdrLayout layout({.lowest = lowest, .highest = 3'600'000'000'000, .significant_digits = digits});
      double error = 1;
      for (int i = 0; i < digits; ++i) error /= 10;
      for (std::size_t i = 0; layout.highest_at(i) < 3'600'000'000'000; ++i) {
        const std::int64_t low = layout.lowest_at(i), high = layout.highest_at(i);
        ASSERT_EQ(layout.index_of(low), i);
        ASSERT_EQ(layout.index_of(high), i);
        ASSERT_EQ(layout.lowest_at(i + 1), high + 1);
        ASSERT_LE(static_cast<double>(high - low), std::max(error * static_cast<double>(low), double(lowest - 1)));
      }
    }
  }
}

TEST(HdrHistogram, IsEmptyAtFirst) {
  const HdrHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.percentile(99), 0);
  EXPECT_EQ(histogram.count_at_or_below(INT64_MAX), 0);
}

TEST(HdrHistogram, FindsPercentilesOfSmallValuesExactly) {
  HdrHistogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.record(i);
  EXPECT_EQ(histogram.percentile(0), 1);
  EXPECT_EQ(histogram.percentile(50), 50);
  EXPECT_EQ(histogram.percentile(99), 99);
  EXPECT_EQ(histogram.percentile(99.1), 100);
  EXPECT_EQ(histogram.percentile(100), 100);
  EXPECT_EQ(histogram.sum(), 5050);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
  EXPECT_EQ(histogram.count_at_or_below(10), 10);
  EXPECT_EQ(histogram.count_at_or_below(-1), 0);
}

TEST(HdrHistogram, KeepsThePromisedPrecisionOfLargeValues) {
  HdrHistogram histogram;
  histogram.record(1'000'000, 3);
  histogram.record(2'000'000);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(75)), 1e6, 1e3);
  EXPECT_EQ(histogram.percentile(100), 2'000'000);
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.min(), 1'000'000);
}

TEST(HdrHistogram, CountsValuesBeyondItsRangeAsSaturated) {
  HdrHistogram histogram({.lowest = 1, .highest = 1000, .significant_digits = 2});
  histogram.record(999);
  histogram.record(1'000'000, 2);
  histogram.record(-7);
  EXPECT_EQ(histogram.saturated(), 2);
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.max(), 1'000'000);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.percentile(100), 1'000'000);
}

TEST(HdrHistogram, AddsAnotherAsIfItsValuesHadBeenRecorded) {
  HdrHistogram left, right, both;
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<std::int64_t>(random.exponential(50'000));
    (i % 3 ? left : right).record(value);
    both.record(value);
  }
  left.add(right);
  EXPECT_EQ(left.count(), both.count());
  EXPECT_EQ(left.sum(), both.sum());
  EXPECT_EQ(left.min(), both.min());
  EXPECT_EQ(left.max(), both.max());
  for (const double percent : {1.0, 50.0, 90.0, 99.9}) EXPECT_EQ(left.percentile(percent), both.percentile(percent));
  left.reset();
  EXPECT_EQ(left.count(), 0);
  EXPECT_EQ(left.percentile(50), 0);
}

TEST(HdrHistogramDeathTest, DoesNotAddAnotherLayout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  HdrHistogram left;
  const HdrHistogram right({.significant_digits = 2});
  EXPECT_DEATH(left.add(right), "one layout");
}

TEST(AtomicHdrHistogram, LosesNothingOfManyWriters) {
  AtomicHdrHistogram shared;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&shared, t] {
      for (int i = 1; i <= 5000; ++i) shared.record(i + t);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const HdrHistogram snapshot = shared.snapshot();
  EXPECT_EQ(snapshot.count(), 20'000);
  EXPECT_EQ(snapshot.min(), 1);
  EXPECT_EQ(snapshot.max(), 5003);
  EXPECT_EQ(snapshot.sum(), 4LL * 5000 * 5001 / 2 + 5000 * (0 + 1 + 2 + 3));
  EXPECT_NEAR(static_cast<double>(snapshot.percentile(50)), 2501, 6);
}

}  // namespace
}  // namespace sluice
