#include "io/sim/sim_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

namespace sluice::io {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

// One end that reads all it gets and writes what it is given, as a connection does.
class Peer final : public StreamEvents {
 public:
  explicit Peer(std::unique_ptr<Stream> stream) : stream(std::move(stream)) {
    this->stream->set_events(this);
    this->stream->want_read();
  }

  void send(std::string_view bytes) {
    unsent += bytes;
    flush();
  }
  void on_readable() override {
    std::array<std::byte, 1000> room;
    for (;;) {
      const IoResult result = stream->read(room);
      if (result.state == IoState::kWouldBlock) return stream->want_read();
      if (result.state == IoState::kEnd) ended = true;
      if (result.state == IoState::kFailed) error = stream->error();
      if (result.state != IoState::kOk) return;
      received += as_text(Bytes(room).first(result.bytes));
    }
  }
  void on_writable() override { flush(); }

  std::unique_ptr<Stream> stream;
  std::string received, unsent;
  bool ended = false;
  std::optional<Error> error;

 private:
  void flush() {
    while (!unsent.empty()) {
      const Bytes part = as_bytes(unsent);
      const IoResult result = stream->write({&part, 1});
      if (result.state == IoState::kWouldBlock) return stream->want_write();
      if (result.state != IoState::kOk) return;
      unsent.erase(0, result.bytes);
    }
  }
};

struct Pair {
  explicit Pair(std::uint64_t seed, SimNetworkOptions options = {})
      : world(seed, options), near_loop(world.make_loop("near")), far_loop(world.make_loop("far")) {
    const auto accept = [this](std::unique_ptr<Stream> stream) { far = std::make_unique<Peer>(std::move(stream)); };
    listener = far_loop.listen({}, {}, accept).value();
    near_loop.connect(listener->local(), kNever, [this](auto stream) {
      ASSERT_TRUE(stream.has_value());
      near = std::make_unique<Peer>(std::move(*stream));
    });
    EXPECT_TRUE(world.run_until([this] { return near && far; }, seconds(1)));
  }

  SimWorld world;
  Loop& near_loop;
  Loop& far_loop;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Peer> near, far;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

std::uint64_t history(std::uint64_t seed) {
  Pair pair(seed);
  pair.near->send(pattern(300'000));
  pair.far->send(pattern(1'000));
  pair.world.run_for(seconds(1));
  EXPECT_EQ(pair.far->received.size(), 300'000U);
  return pair.world.digest();
}

TEST(SimWorld, TheSameSeedGivesTheSameHistoryAndAnotherSeedAnother) {
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

TEST(SimWorld, BytesArriveWholeAndInOrderWhateverTheirPieces) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Pair pair(seed, {.max_piece_bytes = 700, .window_bytes = 5'000});
    const std::string there = pattern(40'000), back = pattern(9'000);
    pair.near->send(there);
    pair.far->send(back);
    pair.world.run_for(seconds(1));
    EXPECT_EQ(pair.far->received, there) << "seed " << seed;
    EXPECT_EQ(pair.near->received, back) << "seed " << seed;
  }
}

TEST(SimWorld, TheSimulatedTimeMovesFromEventToEvent) {
  SimWorld world(1);
  Loop& loop = world.make_loop("loop");
  const Time start = world.now();
  EXPECT_GT(start, Time{}) << "the zero of time means 'not reached'";
  std::vector<int> fired;
  Timer late(loop.timers(), [&] { fired.push_back(2); });
  Timer early(loop.timers(), [&] {
    fired.push_back(1);
    EXPECT_EQ(loop.now(), start + milliseconds(5));
    EXPECT_TRUE(loop.on_loop_thread());
  });
  late.arm(start + seconds(100));
  early.arm(start + milliseconds(5));
  const std::int64_t wall = loop.wall_ms();
  world.run_for(seconds(99));
  EXPECT_THAT(fired, ElementsAre(1));
  EXPECT_EQ(world.now(), start + seconds(99));
  EXPECT_EQ(loop.wall_ms(), wall + 99'000);
  world.run_for(seconds(1));
  EXPECT_THAT(fired, ElementsAre(1, 2));
}

TEST(SimWorld, EachLoopHasItsTimersAndThePostsOfOneThreadKeepTheirOrder) {
  SimWorld world(3);
  Loop& a = world.make_loop("a");
  Loop& b = world.make_loop("b");
  std::vector<int> seen;
  Timer timer_b(b.timers(), [&] { seen.push_back(100); });
  timer_b.arm(world.now() + milliseconds(1));
  Timer timer_a(a.timers(), [&] {
    EXPECT_TRUE(a.on_loop_thread());
    EXPECT_FALSE(b.on_loop_thread());
    for (int i = 0; i < 3; ++i) b.post([&seen, &b, i] {
      EXPECT_TRUE(b.on_loop_thread());
      seen.push_back(i);
    });
  });
  timer_a.arm(world.now() + milliseconds(2));
  world.run_for(milliseconds(3));
  EXPECT_THAT(seen, ElementsAre(100, 0, 1, 2));
}

TEST(SimWorld, WhatIsDeferredRunsBeforeTheNextEvent) {
  SimWorld world(1);
  Loop& loop = world.make_loop("loop");
  std::vector<int> seen;
  Timer second(loop.timers(), [&] { seen.push_back(4); });
  Timer first(loop.timers(), [&] {
    loop.defer([&] {
      seen.push_back(2);
      loop.defer([&] { seen.push_back(3); });
    });
    seen.push_back(1);
  });
  first.arm(world.now() + milliseconds(1));
  second.arm(world.now() + milliseconds(1) + Duration(1));
  world.run_for(seconds(1));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
}

TEST(SimWorld, AWriterBlocksWhenItsPeerDoesNotReadAndGoesOnWhenItDoes) {
  Pair pair(5, {.window_bytes = 1'000});
  pair.far->stream->set_events(nullptr);  // nobody reads there
  const std::string bytes = pattern(10'000);
  pair.near->send(bytes);
  pair.world.run_for(seconds(1));
  EXPECT_EQ(pair.near->unsent.size(), 9'000U) << "exactly the window is taken";
  const Bytes part = as_bytes("x");
  EXPECT_EQ(pair.near->stream->write({&part, 1}).state, IoState::kWouldBlock);

  pair.far->stream->set_events(pair.far.get());
  pair.far->on_readable();
  pair.world.run_for(seconds(1));
  EXPECT_EQ(pair.far->received, bytes);
  EXPECT_TRUE(pair.near->unsent.empty());
}

TEST(SimWorld, WhatWasWrittenBeforeACloseArrivesThenTheEnd) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Pair pair(seed, {.max_piece_bytes = 50});
    const std::string bytes = pattern(2'000);
    pair.near->send(bytes);
    ASSERT_TRUE(pair.near->unsent.empty());
    pair.near->stream->close();
    pair.world.run_for(seconds(1));
    EXPECT_EQ(pair.far->received, bytes);
    EXPECT_TRUE(pair.far->ended);
    EXPECT_FALSE(pair.far->error);
    EXPECT_EQ(pair.world.open_streams(), 1U) << "the far side is still open";
    pair.far.reset();
    EXPECT_EQ(pair.world.open_streams(), 0U);
  }
}

TEST(SimWorld, AfterHalfACloseTheOtherWayStaysOpen) {
  Pair pair(7);
  pair.near->send("question");
  pair.near->stream->shutdown_write();
  pair.world.run_for(seconds(1));
  EXPECT_EQ(pair.far->received, "question");
  EXPECT_TRUE(pair.far->ended);
  pair.far->send("answer");
  pair.world.run_for(seconds(1));
  EXPECT_EQ(pair.near->received, "answer");
  EXPECT_FALSE(pair.near->ended);
}

TEST(SimWorld, BytesToAClosedPeerComeBackAsAReset) {
  Pair pair(8);
  pair.near->stream->close();
  pair.far->send("too late");
  pair.world.run_for(seconds(1));
  ASSERT_FALSE(pair.far->error) << "the reader saw the end first and asked for no more";
  EXPECT_TRUE(pair.far->ended);
  const Bytes part = as_bytes("x");
  EXPECT_EQ(pair.far->stream->write({&part, 1}).state, IoState::kFailed);
  EXPECT_EQ(pair.far->stream->error().code, Code::kUnavailable);
}

TEST(SimWorld, AResetFailsBothSidesAndNothingArrivesAfterIt) {
  Pair pair(9, {.reset_chance = 1});
  pair.near->send("lost");
  pair.world.run_for(seconds(1));
  for (const Peer* peer : {pair.near.get(), pair.far.get()}) {
    ASSERT_TRUE(peer->error);
    EXPECT_EQ(peer->error->code, Code::kUnavailable);
    EXPECT_EQ(peer->received, "");
  }
  EXPECT_EQ(pair.world.open_streams(), 0U);
}

TEST(SimWorld, AHostThatGoesTakesItsStreamsWithIt) {
  Pair pair(10);
  EXPECT_EQ(pair.world.open_streams(), 2U);
  pair.world.at(pair.world.now() + milliseconds(1), [&] { pair.world.reset_all_streams_of(pair.far_loop); });
  pair.world.run_for(milliseconds(2));
  EXPECT_TRUE(pair.near->error);
  EXPECT_TRUE(pair.far->error);
  EXPECT_EQ(pair.world.open_streams(), 0U);
}

TEST(SimWorld, ConnectingEndsOnceWithAStreamARefusalOrTheDeadline) {
  SimWorld world(11, {.min_latency = milliseconds(1), .max_latency = milliseconds(1)});
  Loop& loop = world.make_loop("loop");
  std::vector<Code> codes;
  const auto note = [&](Result<std::unique_ptr<Stream>> result) {
    codes.push_back(result ? Code::kOk : result.error().code);
  };
  loop.connect({.port = 1}, kNever, note);
  world.run_for(seconds(1));
  EXPECT_THAT(codes, ElementsAre(Code::kUnavailable));

  std::vector<std::unique_ptr<Stream>> accepted;
  const auto listener = loop.listen({}, {}, [&](auto stream) { accepted.push_back(std::move(stream)); }).value();
  loop.connect(listener->local(), world.now() + microseconds(1500), note);
  world.run_for(seconds(1));
  loop.connect(listener->local(), world.now() + microseconds(2500), note);
  world.run_for(seconds(1));
  EXPECT_THAT(codes, ElementsAre(Code::kUnavailable, Code::kDeadlineExceeded, Code::kOk));
  EXPECT_EQ(accepted.size(), 2U);
  accepted.clear();
  EXPECT_EQ(world.open_streams(), 0U) << "a connection that came too late was closed";
}

TEST(SimWorld, APortIsTakenOnceUnlessItsListenersShareIt) {
  SimWorld world(12);
  Loop& a = world.make_loop("a");
  Loop& b = world.make_loop("b");
  int on_a = 0, on_b = 0;
  const ListenOptions share{.share_port = true};
  auto first = a.listen({}, share, [&](auto) { ++on_a; });
  ASSERT_TRUE(first.has_value());
  const Endpoint at = (*first)->local();
  EXPECT_NE(at.port, 0);
  const auto refused = b.listen(at, {}, [](auto) {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("already in use"));
  EXPECT_EQ(b.listen({.host = ""}, {}, [](auto) {}).error().code, Code::kInvalidArgument);

  auto second = b.listen(at, share, [&](auto) { ++on_b; });
  ASSERT_TRUE(second.has_value());
  for (int i = 0; i < 40; ++i) a.connect(at, kNever, [](auto) {});
  world.run_for(seconds(1));
  EXPECT_EQ(on_a + on_b, 40);
  EXPECT_GT(on_a, 5);
  EXPECT_GT(on_b, 5);

  first->reset();
  second->reset();
  EXPECT_TRUE(b.listen(at, {}, [](auto) {}).has_value()) << "the port is free again";
}

TEST(SimWorld, AnExecutorRunsItsTasksInOrderEachAfterTheCostOfTheOneBefore) {
  SimWorld world(13);
  Loop& loop = world.make_loop("loop");
  auto executor = world.make_executor([] { return milliseconds(10); });
  const Time start = world.now();
  std::vector<Duration> started;
  for (int i = 0; i < 3; ++i) {
    executor->submit([&] {
      EXPECT_FALSE(loop.on_loop_thread());
      started.push_back(world.now() - start);
    });
  }
  executor.reset();  // what was submitted runs all the same
  world.run_for(seconds(1));
  EXPECT_THAT(started, ElementsAre(milliseconds(0), milliseconds(10), milliseconds(20)));
}

TEST(SimWorld, RunUntilSaysWhetherItCameToThat) {
  SimWorld world(14);
  bool reached = false;
  world.at(world.now() + seconds(2), [&] { reached = true; });
  EXPECT_FALSE(world.run_until([&] { return reached; }, seconds(1)));
  EXPECT_TRUE(world.run_until([&] { return reached; }, seconds(5)));
  EXPECT_FALSE(world.run_until([] { return false; }, seconds(5))) << "nothing is left to run";
}

}  // namespace
}  // namespace sluice::io
