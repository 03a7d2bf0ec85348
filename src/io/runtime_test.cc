#include "io/runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <set>
#include <thread>

namespace sluice::io {
namespace {

Runtime::Options small(int loops) { return {.loops = loops, .compute = {.threads = 2}}; }

TEST(RuntimeTest, EachLoopHasItsThread) {
  Runtime runtime(small(3));
  ASSERT_EQ(runtime.loops().size(), 3u);
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  for (Loop* loop : runtime.loops()) {
    run_on(*loop, [&] {
      EXPECT_TRUE(loop->on_loop_thread());
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_EQ(&runtime.loop(2), runtime.loops()[2]);
  EXPECT_EQ(runtime.compute().threads(), 2);
}

TEST(RuntimeTest, ByDefaultItHasALoopForEachFourCores) {
  Runtime runtime({});
  EXPECT_EQ(runtime.loops().size(), static_cast<std::size_t>(std::max(1, core_budget() / 4)));
  EXPECT_EQ(runtime.compute().threads(), core_budget());
}

TEST(RuntimeTest, LoopsShareAPort) {
  Runtime runtime(small(2));
  std::vector<std::unique_ptr<Listener>> listeners;
  Endpoint at;
  for (Loop* loop : runtime.loops()) {
    run_on(*loop, [&] {
      auto listener = loop->listen(at, {.share_port = true}, [](auto) {});
      ASSERT_TRUE(listener.has_value()) << listener.error().message;
      at = (*listener)->local();
      listeners.push_back(std::move(*listener));
    });
  }
  ASSERT_EQ(listeners.size(), 2u);
  EXPECT_EQ(listeners[0]->local(), listeners[1]->local());
  for (std::size_t i = 0; i < 2; ++i) run_on(runtime.loop(i), [&] { listeners[i].reset(); });
}

TEST(RuntimeTest, SignalsArriveOnLoopZeroAgainAndAgain) {
  Runtime runtime(small(2));
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGTERM}) {
    std::promise<int> arrived;
    runtime.on_signal([&](int number) {
      EXPECT_TRUE(runtime.loop(0).on_loop_thread());
      arrived.set_value(number);
    });
    ::kill(::getpid(), signal);
    EXPECT_EQ(arrived.get_future().get(), signal);
  }
  ::kill(::getpid(), SIGPIPE);  // ignored
}

TEST(RuntimeTest, WaitsUntilStoppedFromAnyThreadAndStaysStopped) {
  Runtime runtime(small(1));
  runtime.loop().post([&] { runtime.stop(); });
  runtime.wait_until_stopped();
  runtime.stop();
  runtime.wait_until_stopped();
}

TEST(RuntimeTest, TheLastTasksOfThePoolMayPostToTheLoops) {
  auto witness = std::make_shared<int>(0);
  {
    Runtime runtime(small(1));
    const auto slice = runtime.compute().slice("last", 1);
    for (int i = 0; i < 100; ++i) {
      slice->submit([&loop = runtime.loop(), witness] { loop.post([witness] {}); });
    }
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(RuntimeTest, SeedsDiffer) { EXPECT_NE(random_seed(), random_seed()); }

}  // namespace
}  // namespace sluice::io
