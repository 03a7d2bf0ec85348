#include "io/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"

namespace sluice::io {
namespace {

Time at(std::int64_t ns) { return Time(Duration(ns)); }

TEST(TimerQueueTest, FiresInOrderOfTimeAndOnlyWhatIsDue) {
  TimerQueue queue;
  std::vector<int> fired;
  Timer c(queue, [&] { fired.push_back(3); });
  Timer a(queue, [&] { fired.push_back(1); });
  Timer b(queue, [&] { fired.push_back(2); });
  c.arm(at(30));
  a.arm(at(10));
  b.arm(at(20));
  EXPECT_EQ(queue.earliest(), at(10));
  EXPECT_EQ(queue.expire(at(9)), 0u);
  EXPECT_EQ(queue.expire(at(20)), 2u);
  EXPECT_EQ(fired, (std::vector{1, 2}));
  EXPECT_FALSE(a.armed());
  EXPECT_TRUE(c.armed());
  EXPECT_EQ(queue.earliest(), at(30));
}

TEST(TimerQueueTest, EqualTimesFireInTheOrderOfArming) {
  TimerQueue queue;
  std::vector<int> fired;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 50; ++i) {
    timers.push_back(std::make_unique<Timer>(queue, [&fired, i] { fired.push_back(i); }));
    timers.back()->arm(at(5));
  }
  timers[7]->arm(at(5));  // armed anew: it is now the last
  queue.expire(at(5));
  ASSERT_EQ(fired.size(), 50u);
  EXPECT_EQ(fired.back(), 7);
  fired.pop_back();
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
}

TEST(TimerQueueTest, ArmingAgainReplacesAndNeverDisarms) {
  TimerQueue queue;
  int fired = 0;
  Timer timer(queue, [&] { ++fired; });
  timer.arm(at(10));
  timer.arm(at(50));
  EXPECT_EQ(queue.expire(at(20)), 0u);
  timer.arm(at(15));
  EXPECT_EQ(timer.at(), at(15));
  timer.arm(kNever);
  EXPECT_FALSE(timer.armed());
  EXPECT_EQ(queue.earliest(), kNever);
  EXPECT_EQ(queue.expire(at(100)), 0u);
  EXPECT_EQ(fired, 0);
}

TEST(TimerQueueTest, ReArmedForNowFiresInTheNextCallEvenBehindThePast) {
  TimerQueue queue;
  std::vector<char> fired;
  Timer repeating(queue, [&] {
    fired.push_back('r');
    repeating.arm(at(1));  // the past: must not keep the others from firing
  });
  Timer other(queue, [&] { fired.push_back('o'); });
  repeating.arm(at(1));
  other.arm(at(5));
  EXPECT_EQ(queue.expire(at(5)), 2u);
  EXPECT_EQ(fired, (std::vector{'r', 'o'}));
  EXPECT_TRUE(repeating.armed());
  EXPECT_EQ(queue.expire(at(5)), 1u);
}

TEST(TimerQueueTest, CallbackMayDestroyItselfAndOthers) {
  TimerQueue queue;
  std::vector<int> fired;
  std::unique_ptr<Timer> own;
  auto victim = std::make_unique<Timer>(queue, [&] { fired.push_back(2); });
  auto witness = std::make_shared<int>(1);
  own = std::make_unique<Timer>(queue, [&, witness] {
    own.reset();
    victim.reset();
    fired.push_back(*witness);  // what the callback captures lives until it returns
  });
  own->arm(at(1));
  victim->arm(at(1));
  Timer last(queue, [&] { fired.push_back(3); });
  last.arm(at(1));
  EXPECT_EQ(queue.expire(at(1)), 2u);
  EXPECT_EQ(fired, (std::vector{1, 3}));
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(TimerQueueTest, DisarmedWithinACallbackDoesNotFire) {
  TimerQueue queue;
  int fired = 0;
  Timer second(queue, [&] { ++fired; });
  Timer first(queue, [&] { second.disarm(); });
  first.arm(at(1));
  second.arm(at(1));
  EXPECT_EQ(queue.expire(at(2)), 1u);
  EXPECT_EQ(fired, 0);
}

TEST(TimerQueueTest, TellsOfAChangedEarliestOnceForAnExpire) {
  std::vector<Time> told;
  TimerQueue queue([&](Time earliest) { told.push_back(earliest); });
  Timer a(queue, [] {});
  Timer b(queue, [&] { a.arm(at(40)); });
  Timer c(queue, [] {});
  b.arm(at(20));
  c.arm(at(30));  // not the earliest: nothing to tell
  a.arm(at(10));
  EXPECT_EQ(told, (std::vector{at(20), at(10)}));
  queue.expire(at(30));
  EXPECT_EQ(told, (std::vector{at(20), at(10), at(40)}));
  a.disarm();
  EXPECT_EQ(told.back(), kNever);
}

TEST(TimerQueueTest, ATimerMayOutliveItsQueue) {
  auto queue = std::make_unique<TimerQueue>();
  Timer timer(*queue, [] {});
  timer.arm(at(1));
  queue.reset();
  EXPECT_FALSE(timer.armed());
}

// Random arms, disarms and expiries against a sorted list.
TEST(TimerQueueTest, AgreesWithASortedList) {
  Random random(20240611);
  TimerQueue queue;
  constexpr int kTimers = 64;
  struct Entry {
    Time at = kNever;
    std::uint64_t order = 0;
  };
  std::vector<Entry> model(kTimers);
  std::vector<int> fired;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < kTimers; ++i) {
    timers.push_back(std::make_unique<Timer>(queue, [&fired, i] { fired.push_back(i); }));
  }
  Time now{};
  std::uint64_t order = 0;
  for (int step = 0; step < 20000; ++step) {
    const auto i = random.below(kTimers);
    if (random.chance(0.7)) {
      model[i] = {now + Duration(random.below(40)), order++};
      timers[i]->arm(model[i].at);
    } else if (random.chance(0.5)) {
      model[i].at = kNever;
      timers[i]->disarm();
    } else {
      now += Duration(random.below(10));
      std::vector<int> expected;
      for (int k = 0; k < kTimers; ++k) {
        if (model[k].at <= now) expected.push_back(k);
      }
      std::ranges::sort(expected, {}, [&](int k) { return std::pair(model[k].at, model[k].order); });
      for (int k : expected) model[k].at = kNever;
      fired.clear();
      ASSERT_EQ(queue.expire(now), expected.size());
      ASSERT_EQ(fired, expected) << "step " << step;
    }
    const Time earliest = std::ranges::min(model, {}, &Entry::at).at;
    ASSERT_EQ(queue.earliest(), earliest) << "step " << step;
  }
}

}  // namespace
}  // namespace sluice::io
