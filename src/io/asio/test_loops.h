// For the tests of this folder: loops on threads, and the two ends of a connection.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "io/asio/asio_loop.h"
#include "io/runtime.h"

namespace sluice::io {

// A loop that runs on a thread of its own until its end.
class LoopThread {
 public:
  explicit LoopThread(std::shared_ptr<SharedPorts> ports = std::make_shared<SharedPorts>())
      : loop_(std::move(ports)), thread_([this] { loop_.run(); }) {}
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  AsioLoop& operator*() { return loop_; }
  AsioLoop* operator->() { return &loop_; }
  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  AsioLoop loop_;
  std::thread thread_;
};

// The value of `body`, which runs on the loop.
template <class Body>
auto on(AsioLoop& loop, Body body) {
  std::promise<decltype(body())> value;
  run_on(loop, [&] {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      value.set_value();
    } else {
      value.set_value(body());
    }
  });
  return value.get_future().get();
}

// Two connected streams of one loop. Made, used and destroyed on the loop.
struct StreamPair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> server;
  std::unique_ptr<Stream> client;
};

inline std::unique_ptr<StreamPair> make_pair(AsioLoop& loop) {
  auto pair = std::make_unique<StreamPair>();
  std::promise<void> connected;
  run_on(loop, [&] {
    const auto check = [&] {
      if (pair->server && pair->client) connected.set_value();
    };
    auto listener = loop.listen({}, {}, [&, check](std::unique_ptr<Stream> stream) {
      pair->server = std::move(stream);
      check();
    });
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    pair->listener = std::move(*listener);
    loop.connect(pair->listener->local(), kNever, [&, check](Result<std::unique_ptr<Stream>> stream) {
      ASSERT_TRUE(stream.has_value()) << stream.error().message;
      pair->client = std::move(*stream);
      check();
    });
  });
  connected.get_future().wait();
  run_on(loop, [&] { pair->listener.reset(); });
  return pair;
}

// Events that call functions.
struct Events final : StreamEvents {
  Function<void()> readable = [] {};
  Function<void()> writable = [] {};
  void on_readable() override { readable(); }
  void on_writable() override { writable(); }
};

inline IoResult write_text(Stream& stream, std::string_view text) {
  const Bytes part = as_bytes(text);
  return stream.write({&part, 1});
}

}  // namespace sluice::io
