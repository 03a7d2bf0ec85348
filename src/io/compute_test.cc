#include "io/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

namespace sluice::io {
namespace {

// Holds the tasks that enter it until it is opened; counts them.
class Gate {
 public:
  void enter() {
    const int inside = ++inside_;
    for (int most = most_; inside > most && !most_.compare_exchange_weak(most, inside);) {
    }
    opened_.wait(false);
    --inside_;
  }
  void wait_for(int count) const {
    while (inside_ != count) std::this_thread::yield();
  }
  void open() {
    opened_ = true;
    opened_.notify_all();
  }
  int most() const { return most_; }

 private:
  std::atomic<int> inside_ = 0;
  std::atomic<int> most_ = 0;
  std::atomic<bool> opened_ = false;
};

TEST(ComputePoolTest, ASliceRunsAtMostItsWidthAndUsesAllOfIt) {
  Gate narrow_gate, wide_gate;
  {
    ComputePool pool({.threads = 5});
    EXPECT_EQ(pool.threads(), 5);
    const auto narrow = pool.slice("narrow", 2);
    const auto wide = pool.slice("wide", 3);
    for (int i = 0; i < 20; ++i) narrow->submit([&] { narrow_gate.enter(); });
    for (int i = 0; i < 20; ++i) wide->submit([&] { wide_gate.enter(); });
    narrow_gate.wait_for(2);
    wide_gate.wait_for(3);
    narrow_gate.open();
    wide_gate.open();
  }
  EXPECT_EQ(narrow_gate.most(), 2);
  EXPECT_EQ(wide_gate.most(), 3);
}

TEST(ComputePoolTest, ASliceOfWidthOneKeepsTheOrder) {
  std::vector<int> order;
  {
    ComputePool pool({.threads = 4});
    const auto slice = pool.slice("serial", 1);
    for (int i = 0; i < 1000; ++i) slice->submit([&order, i] { order.push_back(i); });
  }
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ComputePoolTest, SlicesTakeTurns) {
  std::string order;
  Gate gate;
  {
    ComputePool pool({.threads = 1});
    const auto busy = pool.slice("busy", 1);
    const auto a = pool.slice("a", 1);
    const auto b = pool.slice("b", 4);
    const auto c = pool.slice("c", 1);
    busy->submit([&] { gate.enter(); });
    gate.wait_for(1);
    for (int i = 0; i < 6; ++i) a->submit([&] { order += 'a'; });
    for (int i = 0; i < 3; ++i) b->submit([&] { order += 'b'; });
    for (int i = 0; i < 1; ++i) c->submit([&] { order += 'c'; });
    gate.open();
  }
  EXPECT_EQ(order, "abcababaaa");
}

TEST(ComputePoolTest, TheEndRunsWhatIsQueuedEvenOfASliceThatIsGone) {
  std::atomic<int> ran = 0;
  Gate gate;
  std::unique_ptr<Executor> second;
  {
    ComputePool pool({.threads = 2});
    {
      const auto slice = pool.slice("short", 1);
      slice->submit([&] { gate.enter(); });
      for (int i = 0; i < 100; ++i) slice->submit([&] { ++ran; });
    }
    second = pool.slice("second", 2);
    for (int i = 0; i < 100; ++i) second->submit([&] { ++ran; });
    pool.loader().submit([&] { second->submit([&] { ++ran; }); });
    gate.open();
  }
  EXPECT_EQ(ran, 201);
}

TEST(ComputePoolTest, WhatComesAfterTheEndIsDestroyedNotRun) {
  auto witness = std::make_shared<int>(0);
  std::unique_ptr<Executor> slice;
  {
    ComputePool pool({.threads = 1});
    slice = pool.slice("late", 1);
  }
  slice->submit([witness] { ADD_FAILURE(); });
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ComputePoolTest, WhatATaskCapturedGoesWhenItHasRun) {
  ComputePool pool({.threads = 1});
  const auto slice = pool.slice("one", 1);
  auto witness = std::make_shared<int>(0);
  std::promise<void> end;
  slice->submit([witness] {});
  slice->submit([&] { end.set_value(); });
  end.get_future().wait();
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ComputePoolTest, TheLoaderIsApartAndAtLowPriority) {
  Gate gate;
  ComputePool pool({.threads = 1});
  const auto slice = pool.slice("busy", 1);
  slice->submit([&] { gate.enter(); });
  gate.wait_for(1);
  std::promise<std::pair<int, int>> loader;  // it runs although every thread of the pool is taken
  pool.loader().submit([&] {
    loader.set_value({::sched_getscheduler(0), ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()))});
  });
  EXPECT_EQ(loader.get_future().get(), std::pair(SCHED_BATCH, 10));
  gate.open();
}

TEST(ComputePoolTest, EveryTaskOfManyThreadsRunsOnceAtMostWidthAtATime) {
  constexpr int kSubmitters = 4;
  constexpr int kTasks = 3000;
  constexpr int kSlices = 3;
  std::atomic<int> ran = 0;
  std::atomic<bool> too_wide = false;
  std::array<std::atomic<int>, kSlices> running{};
  {
    ComputePool pool({.threads = 3});
    std::vector<std::unique_ptr<Executor>> slices;
    for (int s = 0; s < kSlices; ++s) slices.push_back(pool.slice("s", s + 1));
    std::vector<std::jthread> submitters;
    for (int t = 0; t < kSubmitters; ++t) {
      submitters.emplace_back([&, t] {
        for (int i = 0; i < kTasks; ++i) {
          const int s = (i + t) % kSlices;
          slices[s]->submit([&, s] {
            if (++running[s] > s + 1) too_wide = true;
            ++ran;
            --running[s];
          });
        }
      });
    }
  }
  EXPECT_EQ(ran, kSubmitters * kTasks);
  EXPECT_FALSE(too_wide);
}

TEST(CoreBudgetTest, IsWithinTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(core_budget(), 1);
  EXPECT_LE(core_budget(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(core_budget(), 1);
  ::sched_setaffinity(0, sizeof(before), &before);
}

TEST(ThreadTest, HasItsNameCutToWhatTheKernelTakesAndItsPriority) {
  std::string name(32, '\0');
  int policy = 0;
  Thread* const thread = start_thread("a-name-that-is-too-long", Priority::kLow, [&] {
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    policy = ::sched_getscheduler(0);
  });
  join_thread(thread);
  EXPECT_STREQ(name.c_str(), "a-name-that-is-");
  EXPECT_EQ(policy, SCHED_BATCH);
}

TEST(ThreadTest, AScopeOfLowPriorityEndsAsItBegan) {
  Thread* const thread = start_thread("scoped", Priority::kNormal, [] {
    const auto nice = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
    const int before = nice();
    ASSERT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    {
      const ScopedLowPriority low;
      EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
      const ScopedLowPriority within;
    }
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    EXPECT_EQ(nice(), before);
  });
  join_thread(thread);
}

}  // namespace
}  // namespace sluice::io
