#include "io/asio/asio_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>

#include "io/asio/test_loops.h"

namespace sluice::io {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(AsioLoopTest, PostedTasksRunOnTheLoopInTheOrderOfEachThread) {
  LoopThread loop;
  constexpr int kThreads = 4;
  constexpr int kTasks = 2000;
  std::vector<std::vector<int>> seen(kThreads);
  std::atomic<bool> elsewhere = false;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kTasks; ++i) {
          loop->post([&, t, i] {
            seen[t].push_back(i);
            if (!loop->on_loop_thread()) elsewhere = true;
          });
        }
      });
    }
  }
  run_on(*loop, [] {});
  EXPECT_FALSE(elsewhere);
  EXPECT_FALSE(loop->on_loop_thread());
  for (const auto& order : seen) {
    EXPECT_EQ(order.size(), static_cast<std::size_t>(kTasks));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
}

TEST(AsioLoopTest, DeferredTasksRunAfterTheBatchOfPostsAndBeforeTheNext) {
  LoopThread loop;
  std::vector<std::string> order;
  std::promise<void> end;
  run_on(*loop, [&] {
    // Both are posted within one task, so they are of one batch.
    loop->post([&] {
      loop->defer([&] {
        order.push_back("deferred 1");
        loop->defer([&] { order.push_back("deferred 3"); });
      });
      loop->post([&] {
        order.push_back("next batch");
        end.set_value();
      });
      order.push_back("post 1");
    });
    loop->post([&] {
      loop->defer([&] { order.push_back("deferred 2"); });
      order.push_back("post 2");
    });
  });
  end.get_future().wait();
  EXPECT_THAT(order,
              ::testing::ElementsAre("post 1", "post 2", "deferred 1", "deferred 2", "deferred 3", "next batch"));
}

TEST(AsioLoopTest, TimersFireAtTheirTimeWhateverWasArmedBefore) {
  LoopThread loop;
  std::vector<int> order;
  std::promise<void> end;
  std::vector<std::unique_ptr<Timer>> timers;
  Time start;
  Time fired;
  run_on(*loop, [&] {
    start = loop->now();
    const auto make = [&](Function<void()> expiry) -> Timer& {
      return *timers.emplace_back(std::make_unique<Timer>(loop->timers(), std::move(expiry)));
    };
    Timer& late = make([&] { order.push_back(3); });
    Timer& middle = make([&] {
      order.push_back(2);
      fired = loop->now();
      end.set_value();
    });
    Timer& soon = make([&, &middle = middle] {
      order.push_back(1);
      middle.arm(start + milliseconds(6));
    });
    late.arm(start + hours(1));
    soon.arm(start + milliseconds(3));
    make([&] { order.push_back(4); }).arm(start + milliseconds(4));
    timers.back().reset();  // disarmed before it is due
  });
  end.get_future().wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_GE(fired, start + milliseconds(6));
  run_on(*loop, [&] { timers.clear(); });
}

TEST(AsioLoopTest, NowNeverGoesBackAndTheWallClockIsAfterThisTest) {
  LoopThread loop;
  const Time first = loop->now();
  EXPECT_LE(first, loop->now());
  EXPECT_GT(loop->wall_ms(), 1'700'000'000'000);
}

TEST(AsioLoopTest, TasksOfALoopThatEndedAreDestroyedNotRun) {
  auto witness = std::make_shared<int>(0);
  bool ran = false;
  {
    LoopThread loop;
    loop.stop();
    loop->post([&, witness] { ran = true; });
    // A destructor that posts finds the loop closed.
    auto last = std::shared_ptr<void>(nullptr, [&loop = *loop](void*) { loop.post([] {}); });
    loop->post([last = std::move(last)] {});
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(AsioLoopTest, ListensOnAFreePortAndTellsBothPeers) {
  LoopThread loop;
  auto pair = make_pair(*loop);
  run_on(*loop, [&] {
    EXPECT_TRUE(pair->server->peer().starts_with("127.0.0.1:")) << pair->server->peer();
    EXPECT_TRUE(pair->client->peer().starts_with("127.0.0.1:"));
    EXPECT_NE(pair->client->peer(), pair->server->peer());
    pair.reset();
  });
}

TEST(AsioLoopTest, APortInUseIsNamed) {
  LoopThread loop;
  run_on(*loop, [&] {
    const auto first = loop->listen({"127.0.0.1", 0}, {}, [](auto) {});
    ASSERT_TRUE(first.has_value());
    const Endpoint taken = (*first)->local();
    EXPECT_NE(taken.port, 0);
    for (const bool share : {false, true}) {
      const auto second = loop->listen(taken, {.share_port = share}, [](auto) {});
      ASSERT_FALSE(second.has_value());
      EXPECT_EQ(second.error().code, Code::kUnavailable);
      EXPECT_EQ(second.error().message, "address " + to_string(taken) + " is already in use");
    }
  });
}

TEST(AsioLoopTest, AListenerThatIsGoneFreesItsPort) {
  LoopThread loop;
  run_on(*loop, [&] {
    for (const bool share : {false, true}) {
      auto first = loop->listen({"127.0.0.1", 0}, {.share_port = share}, [](auto) {});
      ASSERT_TRUE(first.has_value());
      const Endpoint address = (*first)->local();
      first->reset();
      EXPECT_TRUE(loop->listen(address, {.share_port = share}, [](auto) {}).has_value());
    }
  });
}

TEST(AsioLoopTest, OnlyLoopsOfOneProcessShareAPort) {
  const auto ports = std::make_shared<SharedPorts>();
  LoopThread a(ports), b(ports), stranger;
  std::atomic<int> accepted_a = 0, accepted_b = 0;
  constexpr int kConnections = 64;
  std::latch all(kConnections);
  std::vector<std::unique_ptr<Stream>> streams_a, streams_b, clients;
  std::unique_ptr<Listener> listener_a, listener_b;
  const auto listen = [&](AsioLoop& loop, Endpoint at, auto& streams, auto& accepted) {
    auto listener = on(loop, [&] {
      return loop.listen(at, {.share_port = true}, [&](std::unique_ptr<Stream> stream) {
        streams.push_back(std::move(stream));
        ++accepted;
        all.count_down();
      });
    });
    return listener ? std::move(*listener) : nullptr;
  };
  listener_a = listen(*a, {"127.0.0.1", 0}, streams_a, accepted_a);
  ASSERT_NE(listener_a, nullptr);
  const Endpoint address = listener_a->local();
  listener_b = listen(*b, address, streams_b, accepted_b);
  ASSERT_NE(listener_b, nullptr);
  EXPECT_EQ(listener_b->local(), address);

  const auto refused = on(*stranger, [&] { return stranger->listen(address, {.share_port = true}, [](auto) {}); });
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("already in use"));
  EXPECT_FALSE(on(*a, [&] { return a->listen(address, {}, [](auto) {}).has_value(); }));

  run_on(*stranger, [&] {
    for (int i = 0; i < kConnections; ++i) {
      stranger->connect(address, kNever, [&](auto stream) { clients.push_back(std::move(*stream)); });
    }
  });
  all.wait();
  EXPECT_GT(accepted_a, 0);
  EXPECT_GT(accepted_b, 0);
  run_on(*a, [&] { streams_a.clear(), listener_a.reset(); });
  run_on(*b, [&] { streams_b.clear(), listener_b.reset(); });
  run_on(*stranger, [&] { clients.clear(); });
}

TEST(AsioLoopTest, AnAddressThatIsNoneIsRefused) {
  LoopThread loop;
  const auto listener = on(*loop, [&] { return loop->listen({"models.example", 80}, {}, [](auto) {}); });
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().code, Code::kInvalidArgument);
  EXPECT_THAT(listener.error().message, HasSubstr("'models.example'"));
}

// What connect() answers; the stream, if any, is closed.
Result<void> connect_to(LoopThread& loop, const Endpoint& to, Duration limit) {
  std::promise<Result<void>> answer;
  bool within_call = true;
  run_on(*loop, [&] {
    loop->connect(to, saturating_add(loop->now(), limit), [&](Result<std::unique_ptr<Stream>> stream) {
      EXPECT_FALSE(within_call);
      answer.set_value(stream ? Result<void>() : fail(stream.error()));
    });
    within_call = false;
  });
  return answer.get_future().get();
}

TEST(AsioLoopTest, ConnectsByName) {
  LoopThread loop;
  auto listener = on(*loop, [&] { return loop->listen({"localhost", 0}, {}, [](auto) {}); });
  ASSERT_TRUE(listener.has_value());
  const Endpoint by_name{"localhost", (*listener)->local().port};
  const auto connected = connect_to(loop, by_name, hours(1));
  EXPECT_TRUE(connected.has_value()) << connected.error().message;
  run_on(*loop, [&] { listener->reset(); });
}

TEST(AsioLoopTest, AFailureToConnectNamesTheAddressOrTheName) {
  LoopThread loop;
  // A port that was free a moment ago and to which nobody listens.
  const Endpoint nobody = on(*loop, [&] { return (*loop->listen({}, {}, [](auto) {}))->local(); });
  const auto refused = connect_to(loop, nobody, hours(1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message, "cannot connect to " + to_string(nobody) + ": Connection refused");

  const std::string too_long(300, 'a');
  const auto unresolved = connect_to(loop, {too_long, 80}, hours(1));
  ASSERT_FALSE(unresolved.has_value());
  EXPECT_EQ(unresolved.error().code, Code::kUnavailable);
  EXPECT_THAT(unresolved.error().message, HasSubstr("cannot resolve the host '" + too_long + "'"));
}

TEST(AsioLoopTest, AConnectEndsAtItsDeadline) {
  // A listener that never accepts, with its queue full: the kernel drops what comes.
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(socket, 0), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)!::connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), length);
  }
  LoopThread loop;
  const Time start = loop->now();
  const auto late = connect_to(loop, {"127.0.0.1", ntohs(address.sin_port)}, milliseconds(20));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_GE(loop->now(), start + milliseconds(20));
  for (const int filler : fillers) ::close(filler);
  ::close(socket);
}

TEST(AsioLoopTest, AConnectThatIsPendingWhenTheLoopEndsIsDestroyed) {
  auto witness = std::make_shared<int>(0);
  {
    LoopThread loop;
    loop.stop();
    loop->connect({"127.0.0.1", 1}, kNever, [witness](auto) { ADD_FAILURE(); });
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(AsioLoopTest, AcceptsAgainAfterRunningOutOfDescriptors) {
  LoopThread loop;
  std::promise<void> accepted;
  auto listener = on(*loop, [&] { return loop->listen({}, {}, [&](auto) { accepted.set_value(); }); });
  ASSERT_TRUE(listener.has_value());
  const auto failures = [&] { return (*listener)->accept_failures(); };
  EXPECT_EQ(on(*loop, failures), 0u);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{static_cast<rlim_t>(client) + 8, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<int> fillers;
  for (int copy = 0; (copy = ::dup(client)) >= 0;) fillers.push_back(copy);

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((*listener)->local().port);
  (void)!::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  while (on(*loop, failures) == 0) std::this_thread::yield();
  for (const int filler : fillers) ::close(filler);
  ::setrlimit(RLIMIT_NOFILE, &before);
  accepted.get_future().wait();
  ::close(client);
  run_on(*loop, [&] { listener->reset(); });
}

TEST(AsioLoopTest, AListenerMayBeDestroyedByItsOwnHandler) {
  LoopThread loop;
  constexpr int kClients = 3;
  std::latch answered(kClients);
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Stream>> clients;
  int count = 0;
  run_on(*loop, [&] {
    listener = *loop->listen({}, {}, [&](auto) {
      ++count;
      listener.reset();
    });
    for (int i = 0; i < kClients; ++i) {
      loop->connect(listener->local(), kNever, [&](auto stream) {
        if (stream) clients.push_back(std::move(*stream));
        answered.count_down();
      });
    }
  });
  answered.wait();
  while (on(*loop, [&] { return count; }) == 0) std::this_thread::yield();
  run_on(*loop, [&] { clients.clear(); });
  EXPECT_EQ(count, 1);
  EXPECT_EQ(listener, nullptr);
}

}  // namespace
}  // namespace sluice::io
