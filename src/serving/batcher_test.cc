#include "serving/batcher.h"

#include <algorithm>
#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice::serving {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Time at(std::int64_t us) { return Time{microseconds(us)}; }

BatcherOptions batching(std::int64_t max_rows, std::int64_t delay_us = 0) {
  BatcherOptions options;
  options.max_rows = max_rows;
  options.batching = true;
  options.max_delay = microseconds(delay_us);
  return options;
}

// A batcher and what its last event decided.
struct Bench {
  explicit Bench(const BatcherOptions& options) : batcher(options) {}

  Status enqueue(RequestId id, std::int64_t us, QueuedRequest request = {}) {
    out.clear();
    request.id = id;
    return batcher.enqueue(request, at(us), out);
  }
  void rows(RequestId id, std::int64_t rows, std::int64_t us) {
    ASSERT_TRUE(enqueue(id, us, {.rows = rows}).has_value());
  }
  bool cancel(RequestId id, std::int64_t us) {
    out.clear();
    return batcher.cancel(id, at(us), out);
  }
  void free(std::uint32_t instance, std::int64_t us) {
    out.clear();
    batcher.on_instance_free(instance, at(us), out);
  }
  void time(std::int64_t us) {
    out.clear();
    batcher.on_time(at(us), out);
  }
  std::vector<RequestId> batch(std::size_t i = 0) const {
    if (i >= out.batches.size()) return {};
    const auto part = out.requests_of(out.batches[i]);
    return {part.begin(), part.end()};
  }
  CloseReason reason(std::size_t i = 0) const { return out.batches.at(i).reason; }

  Batcher batcher;
  BatcherDecisions out;
};

TEST(Batcher, AFreeInstanceTakesARequestAtOnceWithoutDelay) {
  Bench bench(batching(8));
  bench.rows(1, 1, 0);
  EXPECT_THAT(bench.batch(), ElementsAre(1));
  EXPECT_EQ(bench.reason(), CloseReason::kInstanceFree);
  EXPECT_EQ(bench.out.next_event, kNever);
  EXPECT_EQ(bench.batcher.busy_instances(), 1u);
}

TEST(Batcher, WhatWaitsBehindABusyInstanceBecomesOneBatch) {
  Bench bench(batching(8));
  bench.rows(1, 1, 0);
  for (RequestId id = 2; id <= 4; ++id) bench.rows(id, 2, 1);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  EXPECT_EQ(bench.batcher.waiting_rows(), 6);
  bench.free(0, 10);
  EXPECT_THAT(bench.batch(), ElementsAre(2, 3, 4));
  EXPECT_EQ(bench.out.batches[0].rows, 6);
  EXPECT_EQ(bench.reason(), CloseReason::kInstanceFree);
  bench.free(0, 20);
  EXPECT_TRUE(bench.batcher.idle());
}

TEST(Batcher, ABatchNeverExceedsMaxRows) {
  Bench bench(batching(8));
  bench.rows(1, 8, 0);
  EXPECT_EQ(bench.reason(), CloseReason::kFull);
  bench.rows(2, 5, 0);
  bench.rows(3, 4, 0);  // would make 9
  bench.rows(4, 3, 0);
  bench.free(0, 1);
  EXPECT_THAT(bench.batch(), ElementsAre(2));  // order is kept: 4 does not overtake 3
  EXPECT_EQ(bench.reason(), CloseReason::kFull);
  bench.free(0, 2);
  EXPECT_THAT(bench.batch(), ElementsAre(3, 4));
  EXPECT_EQ(bench.out.batches[0].rows, 7);
}

TEST(Batcher, AnotherShapeClosesTheBatch) {
  Bench bench(batching(8, 1000));
  ASSERT_TRUE(bench.enqueue(1, 0, {.shape_key = 7}));
  EXPECT_THAT(bench.out.batches, IsEmpty());
  ASSERT_TRUE(bench.enqueue(2, 0, {.shape_key = 8}));
  EXPECT_THAT(bench.batch(), ElementsAre(1));
  EXPECT_EQ(bench.reason(), CloseReason::kShapeChange);
  EXPECT_EQ(bench.batcher.waiting(), 1u);
}

TEST(Batcher, WaitsForTheDelayOfTheOldest) {
  Bench bench(batching(8, 100));
  bench.rows(1, 1, 0);
  EXPECT_EQ(bench.out.next_event, at(100));
  bench.rows(2, 1, 60);
  EXPECT_EQ(bench.out.next_event, at(100));
  bench.time(99);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  EXPECT_EQ(bench.out.next_event, at(100));
  bench.time(100);
  EXPECT_THAT(bench.batch(), ElementsAre(1, 2));
  EXPECT_EQ(bench.reason(), CloseReason::kDelay);
  EXPECT_EQ(bench.out.next_event, kNever);
}

TEST(Batcher, AFullBatchDoesNotWait) {
  Bench bench(batching(4, 100));
  for (RequestId id = 1; id <= 3; ++id) bench.rows(id, 1, 0);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.rows(4, 1, 0);
  EXPECT_THAT(bench.batch(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(bench.reason(), CloseReason::kFull);
}

TEST(Batcher, TheDelayHasPassedWhileTheInstanceWasBusy) {
  Bench bench(batching(8, 100));
  bench.rows(1, 8, 0);
  bench.rows(2, 1, 0);
  EXPECT_EQ(bench.out.next_event, kNever);  // nothing to do before the instance is free
  bench.free(0, 500);
  EXPECT_THAT(bench.batch(), ElementsAre(2));
  EXPECT_EQ(bench.reason(), CloseReason::kDelay);
}

TEST(Batcher, APreferredSizeGoesAtOnce) {
  BatcherOptions options = batching(16, 100);
  options.preferred_rows = {4, 8};
  Bench bench(options);
  for (RequestId id = 1; id <= 3; ++id) bench.rows(id, 1, 0);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.rows(4, 1, 0);
  EXPECT_THAT(bench.batch(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(bench.reason(), CloseReason::kPreferred);
  // Nine wait when the instance frees: the largest preferred size, and the ninth waits.
  for (RequestId id = 5; id <= 13; ++id) bench.rows(id, 1, 10);
  bench.free(0, 20);
  EXPECT_EQ(bench.batch().size(), 8u);
  EXPECT_EQ(bench.reason(), CloseReason::kPreferred);
  EXPECT_EQ(bench.batcher.waiting(), 1u);
}

TEST(Batcher, PastTheDelayABatchGrowsBeyondPreferredSizes) {
  BatcherOptions options = batching(16, 100);
  options.preferred_rows = {4};
  Bench bench(options);
  bench.rows(1, 4, 0);
  for (RequestId id = 2; id <= 11; ++id) bench.rows(id, 1, 10);
  bench.free(0, 200);
  EXPECT_EQ(bench.batch().size(), 10u);
  EXPECT_EQ(bench.reason(), CloseReason::kDelay);
}

TEST(Batcher, RowsThatPassTheLargestPreferredSizeCloseTheBatch) {
  BatcherOptions options = batching(16, 100);
  options.preferred_rows = {4};
  Bench bench(options);
  bench.rows(1, 3, 0);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.rows(2, 3, 0);  // 6 rows: 4 cannot be met any more
  EXPECT_THAT(bench.batch(), ElementsAre(1));
  EXPECT_EQ(bench.reason(), CloseReason::kFull);
  bench.free(0, 1);
  EXPECT_THAT(bench.out.batches, IsEmpty());  // the second waits for its delay
  EXPECT_EQ(bench.out.next_event, at(100));
}

TEST(Batcher, ARequestLargerThanThePreferredSizesGoesAlone) {
  BatcherOptions options = batching(16, 100);
  options.preferred_rows = {4};
  Bench bench(options);
  bench.rows(1, 12, 0);
  EXPECT_THAT(bench.batch(), ElementsAre(1));
}

TEST(Batcher, ACancelledRequestLeavesAndMayCompleteAPreferredSize) {
  BatcherOptions options = batching(16, 100);
  options.preferred_rows = {4};
  Bench bench(options);
  bench.rows(1, 1, 0);
  bench.rows(2, 2, 0);
  EXPECT_TRUE(bench.cancel(1, 1));
  EXPECT_FALSE(bench.cancel(1, 1));
  EXPECT_EQ(bench.batcher.waiting(), 1u);
  bench.rows(3, 2, 2);  // 2 + 2
  EXPECT_THAT(bench.batch(), ElementsAre(2, 3));
  EXPECT_FALSE(bench.cancel(2, 3));  // dispatched
}

TEST(Batcher, WithoutBatchingEachRequestIsABatch) {
  BatcherOptions options;
  options.max_rows = 8;
  options.instances = 2;
  Bench bench(options);
  bench.rows(1, 2, 0);
  bench.rows(2, 1, 0);
  EXPECT_THAT(bench.batch(), ElementsAre(2));
  bench.rows(3, 1, 0);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.free(1, 1);
  EXPECT_THAT(bench.batch(), ElementsAre(3));
  EXPECT_EQ(bench.out.batches[0].instance, 1u);
}

TEST(Batcher, DeadlinesExpireInTheQueueAndAreNotRun) {
  Bench bench(batching(8));
  bench.rows(1, 1, 0);
  ASSERT_TRUE(bench.enqueue(2, 0, {.deadline = at(50)}));
  ASSERT_TRUE(bench.enqueue(3, 0, {.deadline = at(30)}));
  ASSERT_TRUE(bench.enqueue(4, 0));
  EXPECT_EQ(bench.out.next_event, at(30));
  bench.time(30);
  EXPECT_THAT(bench.out.expired, ElementsAre(3));
  EXPECT_EQ(bench.out.next_event, at(50));
  bench.free(0, 60);  // the timer was late: 2 must not run
  EXPECT_THAT(bench.out.expired, ElementsAre(2));
  EXPECT_THAT(bench.batch(), ElementsAre(4));
}

TEST(Batcher, TheNextEventIsTheEarlierOfDelayAndDeadline) {
  Bench bench(batching(8, 100));
  bench.rows(1, 1, 0);
  ASSERT_TRUE(bench.enqueue(2, 0, {.deadline = at(40)}));
  EXPECT_EQ(bench.out.next_event, at(40));
  bench.time(40);
  EXPECT_EQ(bench.out.next_event, at(100));
}

TEST(Batcher, RefusesWithTheReason) {
  BatcherOptions options = batching(4);
  options.max_queue_size = 2;
  Bench bench(options);
  const Status large = bench.enqueue(1, 0, {.rows = 5});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kInvalidArgument);
  EXPECT_THAT(large.error().message, HasSubstr("5 rows: expected 1 to 4"));
  EXPECT_EQ(bench.enqueue(1, 0, {.rows = 0}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(bench.enqueue(1, 10, {.deadline = at(10)}).error().code, Code::kDeadlineExceeded);
  for (RequestId id = 1; id <= 3; ++id) bench.rows(id, 1, 0);  // one runs, two wait
  const Status full = bench.enqueue(4, 0);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kResourceExhausted);
  EXPECT_THAT(full.error().message, HasSubstr("2 requests wait (max_queue_size 2)"));
  EXPECT_GT(full.error().retry_after_s, 0u);
  bench.batcher.drain(at(1), bench.out);
  EXPECT_EQ(bench.enqueue(5, 1).error().code, Code::kUnavailable);
}

TEST(Batcher, AnExpiredRequestMakesRoomInAFullQueue) {
  BatcherOptions options = batching(4);
  options.max_queue_size = 1;
  Bench bench(options);
  bench.rows(1, 1, 0);
  ASSERT_TRUE(bench.enqueue(2, 0, {.deadline = at(5)}));
  ASSERT_TRUE(bench.enqueue(3, 6));
  EXPECT_THAT(bench.out.expired, ElementsAre(2));
}

TEST(Batcher, HigherPrioritiesGoFirstAndOneBatchSpansLevels) {
  BatcherOptions options = batching(3);
  options.priority_levels = 3;
  Bench bench(options);
  bench.rows(1, 1, 0);
  ASSERT_TRUE(bench.enqueue(2, 0, {.priority = 2}));
  ASSERT_TRUE(bench.enqueue(3, 0, {.priority = 1}));
  ASSERT_TRUE(bench.enqueue(4, 0, {.priority = 0}));
  ASSERT_TRUE(bench.enqueue(5, 0, {.priority = 0}));
  bench.free(0, 1);
  EXPECT_THAT(bench.batch(), ElementsAre(4, 5, 3));
  bench.free(0, 2);
  EXPECT_THAT(bench.batch(), ElementsAre(2));
}

TEST(Batcher, ALowPriorityRequestsDelayCountsToo) {
  BatcherOptions options = batching(8, 100);
  options.priority_levels = 2;
  Bench bench(options);
  ASSERT_TRUE(bench.enqueue(1, 0, {.priority = 1}));
  ASSERT_TRUE(bench.enqueue(2, 90, {.priority = 0}));
  EXPECT_EQ(bench.out.next_event, at(100));
  bench.time(100);
  EXPECT_THAT(bench.batch(), ElementsAre(2, 1));
}

TEST(Batcher, DrainDispatchesWhatWaitsWithoutDelay) {
  Bench bench(batching(8, 1000));
  bench.rows(1, 1, 0);
  bench.out.clear();
  bench.batcher.drain(at(1), bench.out);
  EXPECT_THAT(bench.batch(), ElementsAre(1));
  EXPECT_EQ(bench.reason(), CloseReason::kDrain);
}

TEST(Batcher, AnInstanceThatIsGoneTakesNothingUntilItIsBack) {
  Bench bench(batching(8));
  bench.rows(1, 1, 0);
  bench.out.clear();
  bench.batcher.set_instance_available(0, false, at(1), bench.out);
  EXPECT_EQ(bench.batcher.busy_instances(), 0u);
  bench.rows(2, 1, 2);
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.free(0, 3);  // late word of the batch that died
  EXPECT_THAT(bench.out.batches, IsEmpty());
  bench.out.clear();
  bench.batcher.set_instance_available(0, true, at(4), bench.out);
  EXPECT_THAT(bench.batch(), ElementsAre(2));
  bench.out.clear();
  bench.batcher.set_instance_available(0, true, at(5), bench.out);  // said twice
  bench.rows(3, 1, 6);
  EXPECT_THAT(bench.out.batches, IsEmpty());
}

// The rules once more, as plainly as they can be written: a list, looked at from its start each time.
class PlainBatcher {
 public:
  explicit PlainBatcher(const BatcherOptions& options) : options_(options), free_(options.instances) {}

  struct Waiting {
    QueuedRequest request;
    Time enqueued;
  };
  struct Decided {
    std::vector<std::vector<RequestId>> batches;
    std::vector<CloseReason> reasons;
    std::vector<RequestId> expired;
    Time next_event = kNever;
  };

  bool enqueue(const QueuedRequest& request, Time now, Decided& out) {
    if (request.rows > options_.max_rows || request.deadline <= now) return settle(now, out), false;
    if (waiting_.size() >= options_.max_queue_size) settle(now, out);
    if (waiting_.size() >= options_.max_queue_size) return settle(now, out), false;
    const auto place = std::ranges::upper_bound(waiting_, request.priority, {},
                                                [](const Waiting& w) { return w.request.priority; });
    waiting_.insert(place, Waiting{request, now});
    settle(now, out);
    return true;
  }
  bool cancel(RequestId id, Time now, Decided& out) {
    expire(now, out);
    const auto erased = std::erase_if(waiting_, [&](const Waiting& w) { return w.request.id == id; });
    settle(now, out);
    return erased > 0;
  }
  void free_one(Time now, Decided& out) {
    ++free_;
    settle(now, out);
  }
  void settle(Time now, Decided& out) {
    expire(now, out);
    while (free_ > 0 && !waiting_.empty()) {
      const auto [count, reason] = choose(now);
      if (count == 0) break;
      std::vector<RequestId> batch;
      for (std::size_t i = 0; i < count; ++i) batch.push_back(waiting_[i].request.id);
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
      out.batches.push_back(batch);
      out.reasons.push_back(reason);
      --free_;
    }
    out.next_event = kNever;
    for (const Waiting& w : waiting_) {
      out.next_event = std::min(out.next_event, w.request.deadline);
      if (free_ > 0) out.next_event = std::min(out.next_event, w.enqueued + options_.max_delay);
    }
  }

 private:
  void expire(Time now, Decided& out) {
    for (const Waiting& w : waiting_) {
      if (w.request.deadline <= now) out.expired.push_back(w.request.id);
    }
    std::erase_if(waiting_, [&](const Waiting& w) { return w.request.deadline <= now; });
  }
  std::pair<std::size_t, CloseReason> choose(Time now) const {
    const auto& preferred = options_.preferred_rows;
    const bool overdue = options_.max_delay > Duration{0} && std::ranges::any_of(waiting_, [&](const Waiting& w) {
                           return w.enqueued + options_.max_delay <= now;
                         });
    const std::int64_t limit = overdue || preferred.empty() ? options_.max_rows : preferred.back();
    std::size_t count = 0, best = 0;
    std::int64_t rows = 0;
    CloseReason reason = overdue ? CloseReason::kDelay : CloseReason::kInstanceFree;
    bool closed = overdue || options_.max_delay == Duration{0};
    for (const Waiting& w : waiting_) {
      const bool differs = w.request.shape_key != waiting_.front().request.shape_key;
      if (count > 0 && (differs || rows + w.request.rows > limit)) {
        reason = differs ? CloseReason::kShapeChange : CloseReason::kFull;
        closed = true;
        break;
      }
      ++count;
      rows += w.request.rows;
      if (std::ranges::find(preferred, rows) != preferred.end()) best = count;
      if (rows >= limit) {
        reason = CloseReason::kFull;
        closed = true;
        break;
      }
    }
    if (best > 0 && !overdue) return {best, CloseReason::kPreferred};
    return {closed ? count : 0, reason};
  }

  BatcherOptions options_;
  std::uint32_t free_;
  std::vector<Waiting> waiting_;
};

BatcherOptions random_options(Random& random) {
  BatcherOptions options = batching(random.between(1, 12), random.chance(0.4) ? 0 : random.between(1, 60));
  options.instances = static_cast<std::uint32_t>(random.between(1, 3));
  options.priority_levels = static_cast<std::uint32_t>(random.between(1, 3));
  options.max_queue_size = static_cast<std::size_t>(random.between(1, 20));
  for (std::int64_t rows = 1; rows <= options.max_rows; ++rows) {
    if (random.chance(0.15)) options.preferred_rows.push_back(rows);
  }
  return options;
}

// One random history on both; every decision must be the same.
void compare_histories(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  Random random(seed);
  const BatcherOptions options = random_options(random);
  Batcher batcher(options);
  PlainBatcher plain(options);
  std::deque<std::uint32_t> busy;
  RequestId next_id = 1;
  Time now = at(0);
  for (int step = 0; step < 400; ++step) {
    now += microseconds(random.between(0, 10));
    BatcherDecisions out;
    PlainBatcher::Decided expected;
    const std::uint64_t kind = random.below(10);
    if (kind < 6) {
      QueuedRequest request{.id = next_id++, .rows = random.between(1, std::min<std::int64_t>(options.max_rows + 1, 5)),
                            .shape_key = random.chance(0.9) ? 1u : 2u,
                            .deadline = random.chance(0.3) ? now + microseconds(random.between(0, 80)) : kNever,
                            .priority = static_cast<std::uint32_t>(random.below(options.priority_levels))};
      ASSERT_EQ(batcher.enqueue(request, now, out).has_value(), plain.enqueue(request, now, expected));
    } else if (kind < 7) {
      const RequestId id = 1 + random.below(next_id);
      ASSERT_EQ(batcher.cancel(id, now, out), plain.cancel(id, now, expected));
    } else if (kind < 9 && !busy.empty()) {
      batcher.on_instance_free(busy.front(), now, out);
      busy.pop_front();
      plain.free_one(now, expected);
    } else {
      batcher.on_time(now, out);
      plain.settle(now, expected);
    }
    ASSERT_EQ(out.batches.size(), expected.batches.size());
    for (std::size_t i = 0; i < out.batches.size(); ++i) {
      const auto part = out.requests_of(out.batches[i]);
      ASSERT_EQ(std::vector<RequestId>(part.begin(), part.end()), expected.batches[i]);
      ASSERT_EQ(out.batches[i].reason, expected.reasons[i]);
      ASSERT_EQ(std::ranges::count(busy, out.batches[i].instance), 0);
      busy.push_back(out.batches[i].instance);
    }
    std::ranges::sort(out.expired);
    std::ranges::sort(expected.expired);
    ASSERT_EQ(out.expired, expected.expired);
    ASSERT_EQ(out.next_event, expected.next_event);
    ASSERT_EQ(batcher.busy_instances(), busy.size());
  }
}

TEST(Batcher, DecidesAsTheRulesWrittenPlainlyDo) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    compare_histories(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace sluice::serving
