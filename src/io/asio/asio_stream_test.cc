#include "io/asio/asio_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <string>

#include "base/random.h"
#include "io/asio/test_loops.h"

namespace sluice::io {
namespace {

using ::testing::HasSubstr;

// Ends when `stream` has something to read.
void wait_readable(AsioLoop& loop, Stream& stream, Events& events) {
  std::promise<void> readable;
  run_on(loop, [&] {
    events.readable = [&] { readable.set_value(); };
    stream.want_read();
  });
  readable.get_future().wait();
}

TEST(AsioStreamTest, MovesWhatIsThereAndThenWouldBlock) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events events;
  run_on(*loop, [&] {
    pair->server->set_events(&events);
    std::byte byte;
    EXPECT_EQ(pair->server->read({&byte, 1}).state, IoState::kWouldBlock);
    const Bytes parts[] = {as_bytes("ab"), {}, as_bytes("cde")};
    EXPECT_EQ(pair->client->write(parts).bytes, 5u);
  });
  wait_readable(*loop, *pair->server, events);
  run_on(*loop, [&] {
    std::array<std::byte, 4> into;
    IoResult result = pair->server->read(into);
    EXPECT_EQ(result.state, IoState::kOk);
    EXPECT_EQ(as_text(Bytes(into).first(result.bytes)), "abcd");
    result = pair->server->read(into);
    EXPECT_EQ(as_text(Bytes(into).first(result.bytes)), "e");
    EXPECT_EQ(pair->server->read(into).state, IoState::kWouldBlock);
    // Data that came meanwhile is found without want_read() as well.
    EXPECT_EQ(write_text(*pair->client, "f").bytes, 1u);
    EXPECT_EQ(pair->server->read(into).state, IoState::kOk);
    pair.reset();
  });
}

TEST(AsioStreamTest, WantReadIsToldOfWhatIsThereAlready) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events events;
  run_on(*loop, [&] {
    pair->server->set_events(&events);
    write_text(*pair->client, "x");
  });
  // Nothing is read between: each want_read() is answered by the same byte.
  for (int i = 0; i < 3; ++i) wait_readable(*loop, *pair->server, events);
  run_on(*loop, [&] { pair.reset(); });
}

TEST(AsioStreamTest, TheEndComesAfterTheBytesAndReadingGoesOnAfterIt) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events server, client;
  run_on(*loop, [&] {
    pair->server->set_events(&server);
    pair->client->set_events(&client);
    write_text(*pair->client, "bye");
    pair->client->shutdown_write();
  });
  wait_readable(*loop, *pair->server, server);
  run_on(*loop, [&] {
    std::array<std::byte, 3> into;
    EXPECT_EQ(pair->server->read(into).bytes, 3u);
    EXPECT_EQ(pair->server->read(into).state, IoState::kEnd);
    EXPECT_EQ(write_text(*pair->server, "bye too").bytes, 7u);
  });
  wait_readable(*loop, *pair->client, client);
  run_on(*loop, [&] {
    std::array<std::byte, 8> into;
    EXPECT_EQ(pair->client->read(into).bytes, 7u);
    pair.reset();
  });
}

TEST(AsioStreamTest, ABrokenConnectionFailsWithTheReasonAndNoSignal) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events events;
  run_on(*loop, [&] {
    pair->server->set_events(&events);
    write_text(*pair->client, "unread: the close becomes a reset");
    write_text(*pair->server, "x");
    pair->client.reset();
  });
  wait_readable(*loop, *pair->server, events);
  run_on(*loop, [&] {
    std::array<std::byte, 64> into;
    IoResult result;
    do {
      result = pair->server->read(into);
    } while (result.state == IoState::kOk || result.state == IoState::kWouldBlock);
    EXPECT_EQ(result.state, IoState::kFailed);
    EXPECT_EQ(pair->server->error().code, Code::kUnavailable);
    EXPECT_THAT(pair->server->error().message, HasSubstr("connection to " + pair->server->peer() + " failed: "));
    EXPECT_THAT(pair->server->error().message, HasSubstr("reset"));
    EXPECT_EQ(write_text(*pair->server, "y").state, IoState::kFailed);
    EXPECT_THAT(pair->server->error().message, HasSubstr("Broken pipe"));
    pair.reset();
  });
}

TEST(AsioStreamTest, NothingIsDeliveredAfterClose) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events events;
  run_on(*loop, [&] {
    pair->server->set_events(&events);
    events.readable = [] { ADD_FAILURE(); };
    events.writable = [] { ADD_FAILURE(); };
    pair->server->want_read();
    pair->server->want_write();
    pair->server->close();
    pair->server->close();
    pair->server->want_read();
    std::byte byte;
    EXPECT_EQ(pair->server->read({&byte, 1}).state, IoState::kFailed);
    EXPECT_EQ(write_text(*pair->server, "x").state, IoState::kFailed);
    pair->server->shutdown_write();
  });
  run_on(*loop, [] {});
  run_on(*loop, [&] { pair.reset(); });
}

// Both streams become readable in one turn; whichever is told first destroys both.
TEST(AsioStreamTest, AHandlerMayDestroyItsStreamAndOthersThatAreReadyToo) {
  LoopThread loop;
  for (int round = 0; round < 50; ++round) {
    auto a = make_pair(*loop);
    auto b = make_pair(*loop);
    Events events;
    std::promise<void> told;
    run_on(*loop, [&] {
      events.readable = [&] {
        a.reset();
        b.reset();
        told.set_value();
      };
      a->server->set_events(&events);
      b->server->set_events(&events);
      a->server->want_read();
      b->server->want_read();
      write_text(*a->client, "x");
      write_text(*b->client, "x");
    });
    told.get_future().wait();
    run_on(*loop, [] {});
  }
}

TEST(AsioStreamTest, WhatAHandlerDefersRunsBeforeTheNextHandler) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  Events events;
  std::vector<int> order;
  std::promise<void> end;
  run_on(*loop, [&] {
    events.readable = [&] {
      loop->post([&] {
        order.push_back(3);
        end.set_value();
      });
      loop->defer([&] { order.push_back(2); });
      order.push_back(1);
    };
    pair->server->set_events(&events);
    pair->server->want_read();
    write_text(*pair->client, "x");
  });
  end.get_future().wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  run_on(*loop, [&] { pair.reset(); });
}

// Sends back what it reads, in pieces of random sizes; ends its side when its peer has.
class Echo final : public StreamEvents {
 public:
  Echo(std::unique_ptr<Stream> stream, std::uint64_t seed) : stream_(std::move(stream)), random_(seed) {
    stream_->set_events(this);
    stream_->want_read();
  }
  void on_readable() override { pump(); }
  void on_writable() override { pump(); }

 private:
  void pump() {
    for (;;) {
      if (sent_ < held_) {
        const Bytes part(buffer_.data() + sent_, std::min(held_ - sent_, 1 + random_.below(70000)));
        const IoResult result = stream_->write({&part, 1});
        if (result.state == IoState::kWouldBlock) return stream_->want_write();
        ASSERT_EQ(result.state, IoState::kOk) << stream_->error().message;
        sent_ += result.bytes;
        continue;
      }
      const IoResult result = stream_->read(MutableBytes(buffer_).first(1 + random_.below(buffer_.size())));
      if (result.state == IoState::kWouldBlock) return stream_->want_read();
      if (result.state == IoState::kEnd) return stream_->shutdown_write();
      ASSERT_EQ(result.state, IoState::kOk) << stream_->error().message;
      sent_ = 0;
      held_ = result.bytes;
    }
  }

  std::unique_ptr<Stream> stream_;
  Random random_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(65536);
  std::size_t held_ = 0;
  std::size_t sent_ = 0;
};

// Sends `total` bytes of a known sequence in random writes of several parts, reads at its own pace, and
// checks what comes back.
class Caller final : public StreamEvents {
 public:
  Caller(std::unique_ptr<Stream> stream, std::size_t total, std::uint64_t seed, Function<void(bool)> done)
      : stream_(std::move(stream)), total_(total), random_(seed), done_(std::move(done)) {
    stream_->set_events(this);
    send();
    stream_->want_read();
  }
  void on_writable() override { send(); }
  void on_readable() override {
    for (;;) {
      const IoResult result = stream_->read(MutableBytes(into_).first(1 + random_.below(into_.size())));
      if (result.state == IoState::kWouldBlock) return stream_->want_read();
      if (result.state != IoState::kOk) return done_(result.state == IoState::kEnd && received_ == total_ && right_);
      for (std::size_t i = 0; i < result.bytes; ++i) right_ &= into_[i] == value_at(received_ + i);
      received_ += result.bytes;
    }
  }

 private:
  static std::byte value_at(std::size_t offset) { return static_cast<std::byte>(offset * 131 >> 3); }

  void send() {
    while (sent_ < total_) {
      out_.clear();
      const std::size_t length = std::min(total_ - sent_, 1 + random_.below(200000));
      for (std::size_t i = 0; i < length; ++i) out_.push_back(value_at(sent_ + i));
      std::vector<Bytes> parts;
      for (std::size_t at = 0; at < length && parts.size() < kMaxWriteParts;) {
        const std::size_t piece = std::min(length - at, random_.below(10000));
        parts.push_back(Bytes(out_).subspan(at, piece));
        at += piece;
      }
      if (parts.front().empty()) continue;
      const IoResult result = stream_->write(parts);
      if (result.state == IoState::kWouldBlock) return stream_->want_write();
      ASSERT_EQ(result.state, IoState::kOk) << stream_->error().message;
      sent_ += result.bytes;
    }
    stream_->shutdown_write();
  }

  std::unique_ptr<Stream> stream_;
  const std::size_t total_;
  Random random_;
  Function<void(bool)> done_;
  std::vector<std::byte> out_;
  std::vector<std::byte> into_ = std::vector<std::byte>(50000);
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  bool right_ = true;
};

TEST(AsioStreamTest, EveryByteComesBackInOrderBetweenTwoLoops) {
  LoopThread server, client;
  constexpr int kConnections = 6;
  constexpr std::size_t kBytes = 3 << 20;
  std::vector<std::unique_ptr<Echo>> echoes;
  std::vector<std::unique_ptr<Caller>> callers;
  std::latch end(kConnections);
  std::atomic<int> right = 0;
  auto listener = on(*server, [&] {
    return server->listen({}, {}, [&](std::unique_ptr<Stream> stream) {
      echoes.push_back(std::make_unique<Echo>(std::move(stream), echoes.size()));
    });
  });
  ASSERT_TRUE(listener.has_value());
  const Endpoint address = (*listener)->local();
  run_on(*client, [&] {
    for (int i = 0; i < kConnections; ++i) {
      client->connect(address, kNever, [&, i](Result<std::unique_ptr<Stream>> stream) {
        ASSERT_TRUE(stream.has_value()) << stream.error().message;
        callers.push_back(std::make_unique<Caller>(std::move(*stream), kBytes, 100 + i, [&](bool all_right) {
          right += all_right;
          end.count_down();
        }));
      });
    }
  });
  end.wait();
  EXPECT_EQ(right, kConnections);
  run_on(*client, [&] { callers.clear(); });
  run_on(*server, [&] { echoes.clear(), listener->reset(); });
}

// Connections that come and go, with posts from a third thread meanwhile; for ThreadSanitizer.
TEST(AsioStreamTest, ConnectionsComeAndGoBetweenLoopsThatAlsoExchangeTasks) {
  LoopThread server, client;
  constexpr int kRounds = 200;
  std::vector<std::unique_ptr<Echo>> echoes;
  std::unique_ptr<Caller> caller;
  std::promise<void> end;
  int rounds = 0;
  auto listener = on(*server, [&] {
    return server->listen({}, {}, [&](std::unique_ptr<Stream> stream) {
      if (echoes.size() == 8) echoes.erase(echoes.begin());
      echoes.push_back(std::make_unique<Echo>(std::move(stream), 7));
    });
  });
  const Endpoint address = (*listener)->local();
  Function<void()> next = [&] {
    client->connect(address, kNever, [&](Result<std::unique_ptr<Stream>> stream) {
      ASSERT_TRUE(stream.has_value()) << stream.error().message;
      caller = std::make_unique<Caller>(std::move(*stream), 5000, rounds, [&](bool all_right) {
        EXPECT_TRUE(all_right);
        if (++rounds == kRounds) return end.set_value();
        client->defer([&] { next(); });
      });
    });
  };
  std::atomic<int> exchanged = 0;
  std::jthread third([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      run_on(*server, [&] { client->post([&] { ++exchanged; }); });
    }
  });
  run_on(*client, [&] { next(); });
  end.get_future().wait();
  third.request_stop();
  third.join();
  EXPECT_GT(exchanged, 0);
  run_on(*client, [&] { caller.reset(); });
  run_on(*server, [&] { echoes.clear(), listener->reset(); });
}

}  // namespace
}  // namespace sluice::io
