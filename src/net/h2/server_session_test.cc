#include "net/h2/server_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "io/sim/sim_world.h"
#include "net/h2/test_frames.h"
#include "net/test_client.h"
#include "net/test_service.h"

namespace sluice::net::h2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kHighestId = 0x7fffffff;

class Http2ServerTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void serve(const ServerLimits& limits = {}) {
    server_.emplace(server_loop_, service_, limits, nullptr);
    at_ = *server_->listen({.host = "server", .port = 0}, {});
  }
  std::unique_ptr<TestClient> connect() {
    auto client = std::make_unique<TestClient>(client_loop_, at_);
    client->send(opening());
    return client;
  }
  void run(Duration time = milliseconds(50)) { world_.run_for(time); }

  static std::vector<Frame> frames(const TestClient& client, std::uint32_t stream) {
    std::vector<Frame> all = parse_frames(client.received);
    std::erase_if(all, [&](const Frame& f) { return f.stream != stream; });
    return all;
  }
  static std::vector<int> types(const std::vector<Frame>& frames) {
    std::vector<int> types;
    for (const Frame& f : frames) types.push_back(f.type);
    return types;
  }
  static std::optional<Frame> last(const TestClient& client, std::uint8_t type) {
    std::vector<Frame> all = parse_frames(client.received);
    std::erase_if(all, [&](const Frame& f) { return f.type != type; });
    return all.empty() ? std::nullopt : std::optional(all.back());
  }
  static std::string body(const TestClient& client, std::uint32_t stream) {
    std::string body;
    for (const Frame& f : frames(client, stream)) {
      if (f.type == kData) body += f.payload;
    }
    return body;
  }
  void expect_sent_away(const TestClient& client, std::uint32_t error_code) {
    const auto goaway = last(client, kGoAway);
    ASSERT_TRUE(goaway);
    EXPECT_EQ(goaway->number(4), error_code);
    EXPECT_TRUE(client.ended);
  }

  io::SimWorld world_{GetParam()};
  io::Loop& server_loop_ = world_.make_loop("server");
  io::Loop& client_loop_ = world_.make_loop("client");
  TestService service_;
  std::optional<HttpServer> server_;
  io::Endpoint at_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Http2ServerTest, ::testing::Range<std::uint64_t>(1, 7));

TEST_P(Http2ServerTest, AGrpcAnswerIsHeadBodyAndTrailers) {
  serve();
  const auto client = connect();
  client->send(request(1, "POST", "/echo", kNoFlags, {{"content-type", "application/grpc"}, {"te", "trailers"}}) +
               frame(kData, kEndStream, 1, "hello"));
  run();
  const auto answer = frames(*client, 1);
  ASSERT_THAT(types(answer), ElementsAre(kHeaders, kData, kHeaders));
  EXPECT_EQ(answer[0].flags, kEndHeaders);
  EXPECT_EQ(answer[1].flags, kNoFlags);
  EXPECT_EQ(answer[1].payload, "hello");
  EXPECT_EQ(answer[2].flags, kEndHeaders | kEndStream);
}

TEST_P(Http2ServerTest, AGrpcAnswerWithoutABodyIsOneFrame) {
  serve();
  const auto client = connect();
  client->send(request(1, "POST", "/echo", kEndStream, {{"content-type", "application/grpc"}}));
  run();
  const auto answer = frames(*client, 1);
  ASSERT_THAT(types(answer), ElementsAre(kHeaders));
  EXPECT_EQ(answer[0].flags, kEndHeaders | kEndStream);
}

TEST_P(Http2ServerTest, AnEarlyAnswerIsCompleteBeforeTheStreamIsReset) {
  serve();
  const auto client = connect();
  client->send(request(1, "POST", "/early", kNoFlags) + frame(kData, kNoFlags, 1, "never read"));
  run();
  const auto answer = frames(*client, 1);
  ASSERT_THAT(types(answer), ElementsAre(kHeaders, kData, kRstStream));
  EXPECT_EQ(answer[1].flags, kEndStream);
  EXPECT_EQ(answer[2].number(), 0u);
  client->send(frame(kData, kNoFlags, 1, std::string(1000, 'x')) + request(3, "GET", "/early", kEndStream));
  run();
  EXPECT_EQ(body(*client, 3), "early");
  EXPECT_EQ(server_->counters().requests_open, 0u);
}

TEST_P(Http2ServerTest, AResetInEachStateAbortsOnce) {
  serve();
  const auto client = connect();
  const std::string reset = big_endian(8);  // CANCEL
  client->send(request(1, "POST", "/echo", kNoFlags) + frame(kRstStream, 0, 1, reset));
  client->send(request(3, "POST", "/echo", kNoFlags) + frame(kData, 0, 3, "part") + frame(kRstStream, 0, 3, reset));
  client->send(request(5, "GET", "/hold", kEndStream) + frame(kRstStream, 0, 5, reset));
  client->send(request(7, "POST", "/pause", kNoFlags) + frame(kData, 0, 7, "kept") + frame(kRstStream, 0, 7, reset));
  client->send(request(9, "POST", "/pause", kNoFlags) + frame(kData, kEndStream, 9, "kept"));
  client->send(request(11, "GET", "/stream?bytes=10000000", kEndStream));
  run();
  client->send(frame(kRstStream, 0, 9, reset) + frame(kRstStream, 0, 11, reset));
  run();
  EXPECT_EQ(service_.opened, 6);
  EXPECT_EQ(service_.aborts.size(), 6u);
  for (const Error& abort : service_.aborts) {
    EXPECT_EQ(abort.code, Code::kCancelled);
    EXPECT_THAT(abort.message, HasSubstr("CANCEL"));
  }
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_EQ(server_->counters().requests_open, 0u);
  client->send(request(13, "GET", "/early", kEndStream) + frame(kRstStream, 0, 13, reset));
  client->send(frame(kWindowUpdate, 0, 0, big_endian(100000)) + request(15, "GET", "/early", kEndStream));
  run();
  EXPECT_EQ(body(*client, 15), "early");
  EXPECT_EQ(service_.aborts.size(), 6u);
}

TEST_P(Http2ServerTest, RapidResetsEndTheConnection) {
  serve();
  const auto client = connect();
  std::string bytes;
  for (std::uint32_t i = 0; i < 1100; ++i) {
    bytes += request(2 * i + 1, "GET", "/hold", kEndStream) + frame(kRstStream, 0, 2 * i + 1, big_endian(8));
  }
  client->send(bytes);
  run(seconds(2));
  expect_sent_away(*client, 11);  // ENHANCE_YOUR_CALM
  EXPECT_LE(service_.opened, 1001);
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http2ServerTest, ResetsAtAPeacefulRateAreServed) {
  serve();
  const auto client = connect();
  for (std::uint32_t i = 0; i < 3000; ++i) {
    client->send(request(2 * i + 1, "GET", "/hold", kEndStream) + frame(kRstStream, 0, 2 * i + 1, big_endian(8)));
    run(milliseconds(11));
  }
  EXPECT_FALSE(client->ended);
  EXPECT_EQ(service_.opened, 3000);
}

TEST_P(Http2ServerTest, AFloodOfControlFramesEndsTheConnection) {
  serve();
  for (const std::string& flood : {frame(kPing, 0, 0, "12345678"), frame(kSettings, 0, 0, "")}) {
    const auto client = connect();
    std::string bytes;
    for (int i = 0; i < 11000; ++i) bytes += flood;
    client->send(bytes);
    run(seconds(2));
    EXPECT_TRUE(client->ended);
  }
  EXPECT_EQ(server_->counters().protocol_errors, 2u);
  const auto client = connect();
  client->send(request(1, "POST", "/echo", kNoFlags));
  for (int i = 0; i < 11000; ++i) client->send(frame(kData, 0, 1, ""));
  run(seconds(2));
  expect_sent_away(*client, 11);
}

TEST_P(Http2ServerTest, MoreStreamsThanAllowedAreRefused) {
  serve({.max_streams = 2});
  const auto client = connect();
  for (const std::uint32_t id : {1u, 3u, 5u}) client->send(request(id, "GET", "/hold", kEndStream));
  run();
  EXPECT_EQ(service_.held(), 2u);
  const auto refused = frames(*client, 5);
  ASSERT_THAT(types(refused), ElementsAre(kRstStream));
  EXPECT_EQ(refused[0].number(), 7u);  // REFUSED_STREAM
}

TEST_P(Http2ServerTest, TooManyHeaderBytesAreAnsweredWithTheLimit) {
  serve({.max_header_bytes = 2000});
  const auto client = connect();
  client->send(request(1, "GET", "/echo", kEndStream, {{"x-long", std::string(3000, 'x')}}));
  client->send(request(3, "POST", "/echo", kNoFlags,
                       {{"content-type", "application/grpc"}, {"x-long", std::string(3000, 'x')}}));
  client->send(request(5, "GET", "/echo", kEndStream, {{"x-short", std::string(1500, 'x')}}));
  run();
  EXPECT_THAT(body(*client, 1), HasSubstr("the limit is 2000"));
  EXPECT_THAT(types(frames(*client, 3)), ElementsAre(kHeaders, kRstStream));  // trailers-only, then NO_ERROR
  EXPECT_EQ(service_.opened, 1);
}

TEST_P(Http2ServerTest, TimesOutEachKindOfWait) {
  serve();
  const auto idle = connect(), head = connect(), stalled = connect(), reader = connect();
  head->send(frame(kHeaders, kNoFlags, 1, field_block({{":method", "GET"}})));
  stalled->send(request(1, "POST", "/echo", kNoFlags) + frame(kData, 0, 1, "part"));
  reader->send(frame(kSettings, 0, 0, big_endian(4, 2) + big_endian(0)));  // no window for any stream
  reader->send(request(1, "GET", "/stream?bytes=5000", kEndStream));
  run(milliseconds(9900));
  EXPECT_FALSE(head->ended);
  run(milliseconds(1500));
  expect_sent_away(*head, 11);
  run(seconds(18));
  EXPECT_TRUE(service_.aborts.empty());
  run(seconds(2));
  EXPECT_THAT(types(frames(*stalled, 1)), ElementsAre(kHeaders, kData, kRstStream));
  EXPECT_THAT(body(*stalled, 1), HasSubstr("body stall time-out"));
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kDeadlineExceeded);
  EXPECT_THAT(types(frames(*reader, 1)), ElementsAre(kHeaders, kRstStream));
  EXPECT_FALSE(stalled->ended);
  EXPECT_FALSE(reader->ended);
  EXPECT_EQ(server_->counters().timeouts, 3u);
  run(seconds(270));
  EXPECT_TRUE(idle->ended);
  run(seconds(60));
  EXPECT_TRUE(stalled->ended);
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(Http2ServerTest, AReaderThatTakesNothingLosesTheConnection) {
  serve();
  const auto client = connect();
  client->send(frame(kSettings, 0, 0, big_endian(4, 2) + big_endian(kHighestId)));
  client->send(frame(kWindowUpdate, 0, 0, big_endian(kHighestId - 65535)));
  client->set_reading(false);
  client->send(request(1, "GET", "/stream?bytes=90000000", kEndStream));
  run(seconds(25));
  EXPECT_LT(service_.written, 6000000u);
  EXPECT_EQ(service_.handlers, 1);
  run(seconds(10));
  EXPECT_EQ(service_.handlers, 0);
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kCancelled);
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(Http2ServerTest, ASlowReaderIsServedAtItsOwnPace) {
  serve();
  const auto client = connect();
  client->send(request(1, "GET", "/stream?bytes=100000", kEndStream));
  for (int i = 0; i < 10; ++i) {
    run(seconds(25));
    client->send(frame(kWindowUpdate, 0, 0, big_endian(5000)) + frame(kWindowUpdate, 0, 1, big_endian(5000)));
  }
  run();
  EXPECT_EQ(body(*client, 1).size(), 100000u);
  EXPECT_EQ(server_->counters().timeouts, 0u);
}

TEST_P(Http2ServerTest, APausedBodyGetsNoWindow) {
  serve({.stream_window_bytes = 100000});
  const auto client = connect();
  run();
  client->send(frame(kSettings, kAck, 0, "") + frame(kWindowUpdate, 0, 0, big_endian(100000)));
  client->send(request(1, "POST", "/pause", kNoFlags) + frame(kWindowUpdate, 0, 1, big_endian(100000)));
  for (int i = 0; i < 10; ++i) client->send(frame(kData, i == 9 ? kEndStream : kNoFlags, 1, std::string(10000, 'p')));
  run(seconds(60));  // a pause is no stall
  EXPECT_THAT(types(frames(*client, 1)), ElementsAre());
  service_.release();
  run();
  EXPECT_TRUE(body(*client, 1) == std::string(100000, 'p'));
}

TEST_P(Http2ServerTest, DrainsInTwoStepsAndLosesNothing) {
  serve();
  const auto client = connect();
  client->send(request(1, "GET", "/hold", kEndStream));
  run();
  bool drained = false;
  server_->drain([&] { drained = true; });
  run();
  auto goaway = last(*client, kGoAway);
  ASSERT_TRUE(goaway);
  EXPECT_EQ(goaway->number(), kHighestId);
  client->send(request(3, "GET", "/early", kEndStream));  // crossed the first GOAWAY
  run();
  EXPECT_EQ(body(*client, 3), "early");
  const auto ping = last(*client, kPing);
  ASSERT_TRUE(ping);
  client->send(frame(kPing, kAck, 0, ping->payload) + request(5, "GET", "/early", kEndStream));
  run();
  goaway = last(*client, kGoAway);
  EXPECT_EQ(goaway->number(), 3u);
  EXPECT_EQ(goaway->number(4), 0u);
  EXPECT_THAT(types(frames(*client, 5)), ElementsAre());
  EXPECT_FALSE(drained);
  service_.release();
  run(seconds(2));
  EXPECT_EQ(body(*client, 1), "held");
  EXPECT_TRUE(client->ended);
  EXPECT_TRUE(drained);
}

TEST_P(Http2ServerTest, ADrainDoesNotWaitForThePing) {
  serve();
  const auto client = connect();
  run();
  bool drained = false;
  server_->drain([&] { drained = true; });
  run(seconds(3));
  EXPECT_EQ(last(*client, kGoAway)->number(), 0u);
  EXPECT_TRUE(drained);
}

TEST_P(Http2ServerTest, AClientThatGoesAwayAbortsItsRequests) {
  serve();
  for (int how = 0; how < 2; ++how) {
    const auto client = connect();
    client->send(request(1, "GET", "/hold", kEndStream) + request(3, "POST", "/echo", kNoFlags));
    run();
    how == 0 ? client->end() : client->close();
    run();
    EXPECT_EQ(service_.aborts.size(), 2u * (how + 1));
    EXPECT_EQ(service_.handlers, 0);
    EXPECT_EQ(server_->counters().connections_open, 0u);
  }
}

TEST_P(Http2ServerTest, ProtocolErrorsAbortAndSayGoodbye) {
  serve();
  const auto client = connect();
  client->send(request(1, "GET", "/hold", kEndStream));
  run();
  client->send(frame(kData, 0, 0, "data of no stream"));
  run();
  expect_sent_away(*client, 1);  // PROTOCOL_ERROR
  EXPECT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(server_->counters().protocol_errors, 1u);
}

TEST_P(Http2ServerTest, OneConnectionTooManyIsClosed) {
  serve({.max_connections = 1});
  const auto first = connect();
  run();
  const auto second = connect();
  run();
  EXPECT_FALSE(first->ended);
  EXPECT_TRUE(second->ended);
  EXPECT_EQ(server_->counters().connections_refused, 1u);
}

TEST_P(Http2ServerTest, RandomBytesNeverBreakIt) {
  serve();
  Random random(GetParam());
  for (int i = 0; i < 300; ++i) {
    std::string bytes = request(1, "POST", "/echo", kNoFlags) + frame(kData, 0, 1, "some") +
                        request(3, "GET", "/hold", kEndStream) + frame(kWindowUpdate, 0, 1, big_endian(10)) +
                        frame(kRstStream, 0, 3, big_endian(8)) + frame(kPing, 0, 0, "12345678") +
                        frame(kData, kEndStream, 1, "body") + request(5, "GET", "/stream?bytes=4000", kEndStream);
    for (std::uint64_t n = random.below(5); n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    const auto client = connect();
    client->send(bytes);
    run(milliseconds(5));
  }
  run(seconds(40));
  EXPECT_EQ(server_->counters().connections_open, 0u);
  EXPECT_EQ(server_->counters().requests_open, 0u);
  EXPECT_EQ(service_.handlers, 0);
}

}  // namespace
}  // namespace sluice::net::h2
