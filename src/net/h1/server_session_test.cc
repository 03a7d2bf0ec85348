#include "net/h1/server_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "io/sim/sim_world.h"
#include "net/test_client.h"
#include "net/test_service.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Http1ServerTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void serve(const ServerLimits& limits = {}) {
    server_.emplace(server_loop_, service_, limits, nullptr);
    at_ = *server_->listen({.host = "server", .port = 0}, {});
  }
  std::unique_ptr<TestClient> connect() { return std::make_unique<TestClient>(client_loop_, at_); }
  void run(Duration time = milliseconds(50)) { world_.run_for(time); }
  // Sends `request` on a connection of its own and returns all that comes back in `time`.
  std::string ask(std::string_view request, Duration time = milliseconds(50)) {
    const auto client = connect();
    client->send(request);
    run(time);
    closed_ = client->ended;
    return client->received;
  }

  io::SimWorld world_{GetParam()};
  io::Loop& server_loop_ = world_.make_loop("server");
  io::Loop& client_loop_ = world_.make_loop("client");
  TestService service_;
  std::optional<HttpServer> server_;
  io::Endpoint at_;
  bool closed_ = false;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Http1ServerTest, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(Http1ServerTest, AnswersByteForByte) {
  serve();
  EXPECT_EQ(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello");
  EXPECT_FALSE(closed_);
  EXPECT_EQ(ask("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\n\r\nno such path");
  EXPECT_EQ(ask("HEAD /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\n\r\n");
}

TEST_P(Http1ServerTest, KeepsOrClosesTheConnectionAsTheVersionSays) {
  serve();
  EXPECT_EQ(ask("GET /early HTTP/1.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nearly");
  EXPECT_TRUE(closed_);
  EXPECT_EQ(ask("GET /early HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nearly");
  EXPECT_FALSE(closed_);
  EXPECT_EQ(ask("GET /early HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nearly");
  EXPECT_TRUE(closed_);
}

TEST_P(Http1ServerTest, AnswersPipelinedRequestsInOrder) {
  serve();
  std::string requests, answers;
  for (int i = 0; i < 200; ++i) {
    const std::string body(i % 7, 'x');
    requests += fmt::format("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    answers += fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", body.size(), body);
  }
  EXPECT_EQ(ask(requests, seconds(1)), answers);
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http1ServerTest, TakesBodiesOfManySizesPlacedAndInChunks) {
  serve();
  for (const std::size_t size : {0ul, 1ul, 1000ul, 16384ul, 70000ul, 600000ul, 2000000ul}) {
    std::string body(size, '\0');
    for (char& c : body) c = static_cast<char>('a' + world_.random().below(26));
    const std::string answer = fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", size, body);
    for (const std::string_view path : {"/echo", "/place"}) {
      EXPECT_EQ(ask(fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", path, size, body),
                    seconds(2)) == answer, true) << path << ' ' << size;
      std::string chunked = fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", path);
      for (std::size_t at = 0; path == "/echo" && at < size;) {
        const std::size_t n = std::min<std::size_t>(size - at, 1 + world_.random().below(50000));
        chunked += fmt::format("{:x};x=y\r\n{}\r\n", n, body.substr(at, n));
        at += n;
      }
      if (path == "/echo") {
        EXPECT_EQ(ask(chunked + "0\r\nTrailer: t\r\n\r\n", seconds(2)) == answer, true) << size;
      }
    }
  }
  EXPECT_TRUE(service_.aborts.empty());
}

TEST_P(Http1ServerTest, ReadsALargeBodyIntoTheHandlersMemory) {
  serve();
  const std::string body(600000, 'b');
  ask(fmt::format("POST /place HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", body.size(), body), seconds(2));
  EXPECT_EQ(service_.placed, body.size());
  EXPECT_EQ(service_.largest_chunk, 0u);
}

TEST_P(Http1ServerTest, RefusesWhatTwoReadersCouldReadDifferently) {
  serve();
  const std::string host = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const std::pair<std::string, int> cases[] = {
      {host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {host + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {host + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {host + "Content-Length: +5\r\n\r\nhello", 400},
      {host + "Content-Length: -1\r\n\r\nhello", 400},
      {host + "Content-Length: 0x5\r\n\r\nhello", 400},
      {host + "Content-Length: 99999999999999999999\r\n\r\nhello", 400},
      {host + "Content-Length:\r\n\r\n", 400},
      {host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {host + "X: a\r\n b\r\n\r\n", 400},
      {host + "X : a\r\n\r\n", 400},
      {host + " X: a\r\n\r\n", 400},
      {host + "X: a\nY: b\r\n\r\n", 400},
      {host + "X: a\rY: b\r\n\r\n", 400},
      {host + std::string("X: a\0b\r\n\r\n", 10), 400},
      {"GET /echo HTTP/1.1\nHost: a\n\n", 400},
      {"GET /echo HTTP/1.1\r\n\r\n", 400},
      {"GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET /echo HTTP/0.9\r\nHost: a\r\n\r\n", 505},
      {"GET /echo\r\nHost: a\r\n\r\n", 505},
      {"NONSENSE /echo HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a\xffz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /echo HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417},
      {"\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 11), 400},
  };
  for (const auto& [request, status] : cases) {
    const std::string answer = ask(request, milliseconds(200));
    EXPECT_THAT(answer, StartsWith(fmt::format("HTTP/1.1 {} ", status))) << request;
    EXPECT_THAT(answer, HasSubstr("connection: close\r\n\r\n{\"error\":")) << request;
    EXPECT_TRUE(closed_) << request;
  }
  EXPECT_EQ(service_.opened, 0);
  EXPECT_EQ(server_->counters().protocol_errors, std::size(cases));
}

TEST_P(Http1ServerTest, RefusesMalformedChunks) {
  serve();
  const std::string host = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string_view body :
       {"x\r\n", "\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhelloworld\r\n", "5\r\nhello\n", "-1\r\n", "5 5\r\r",
        "0x5\r\nhello\r\n", "ffffffffffffffffff\r\n", "0\r\nno colon\r\n\r\n", "0\r\nx: a\rb\r\n\r\n", "0\r\n\rx"}) {
    EXPECT_THAT(ask(host + std::string(body)), StartsWith("HTTP/1.1 400 ")) << body;
    EXPECT_TRUE(closed_) << body;
  }
  EXPECT_THAT(ask(host + "1;" + std::string(20000, 'e')), StartsWith("HTTP/1.1 400 "));
  for (const Error& abort : service_.aborts) EXPECT_EQ(abort.code, Code::kInvalidArgument);
  EXPECT_EQ(service_.aborts.size(), 13u);
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http1ServerTest, LimitsHeadsAndBodiesAndNamesTheLimit) {
  serve({.max_header_bytes = 1000, .max_body_bytes = 100});
  const std::string long_field = "X: " + std::string(2000, 'x');
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nHost: a\r\n" + long_field + "\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr("the limit is 1000")));
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nHost: a\r\n" + long_field), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("101 bytes, the limit is 100")));
  EXPECT_TRUE(closed_);
  EXPECT_EQ(service_.opened, 0);
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3c\r\n" + std::string(60, 'a') +
                  "\r\n3c\r\n" + std::string(60, 'a') + "\r\n0\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("the limit is 100")));
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kResourceExhausted);
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'a')),
              StartsWith("HTTP/1.1 200 "));
}

TEST_P(Http1ServerTest, AsksForTheBodyOnlyWhenItIsWanted) {
  serve();
  const auto client = connect();
  client->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n");
  run();
  EXPECT_EQ(client->received, "HTTP/1.1 100 Continue\r\n\r\n");
  client->send("hello");
  run();
  EXPECT_EQ(client->received, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
  // Refused without the body: no "100", and the connection cannot be used again.
  EXPECT_EQ(ask("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nearly");
  EXPECT_TRUE(closed_);
}

TEST_P(Http1ServerTest, AnEarlyAnswerReachesAClientThatIsStillSending) {
  serve();
  const auto client = connect();
  client->send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + std::string(1000000, 'x'));
  run(milliseconds(500));
  EXPECT_EQ(client->received, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nearly");
  EXPECT_FALSE(client->broken);
}

TEST_P(Http1ServerTest, StreamsInChunksAsFastAsTheReaderTakes) {
  ServerLimits limits;
  limits.max_unsent_bytes = 100000;
  serve(limits);
  const auto client = connect();
  client->set_reading(false);
  client->send("GET /stream?bytes=5000000 HTTP/1.1\r\nHost: a\r\n\r\n");
  run(seconds(1));
  EXPECT_LT(service_.written, 600000u);  // the network's window and the limit, not the whole
  client->set_reading(true);
  run(seconds(10));
  EXPECT_EQ(service_.written, 5000000u);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\nsss"));
  EXPECT_THAT(client->received, EndsWith("s\r\n0\r\nstreamed: all\r\n\r\n"));
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http1ServerTest, StreamsUntilTheCloseInTheOlderVersion) {
  serve();
  EXPECT_EQ(ask("GET /stream?bytes=2500 HTTP/1.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + std::string(2500, 's'));
  EXPECT_TRUE(closed_);
  EXPECT_EQ(ask("HEAD /stream?bytes=2500 HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
}

TEST_P(Http1ServerTest, TellsTheHandlerOfAClientThatLeaves) {
  serve();
  const auto client = connect();
  client->send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  run();
  EXPECT_EQ(service_.held(), 1u);
  client->close();
  run();
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kCancelled);
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_EQ(server_->counters().connections_open, 0u);
  EXPECT_EQ(server_->counters().requests_open, 0u);
}

TEST_P(Http1ServerTest, AHeldAnswerComesLaterAndTheNextRequestAfterIt) {
  serve();
  const auto client = connect();
  client->send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /early HTTP/1.1\r\nHost: a\r\n\r\n");
  run();
  EXPECT_EQ(client->received, "");
  service_.release();
  run();
  EXPECT_EQ(client->received,
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nheldHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly");
}

TEST_P(Http1ServerTest, APausedBodyHoldsTheClient) {
  serve();
  const auto client = connect();
  const std::string body(1000000, 'p');
  client->send(fmt::format("POST /pause HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  run(seconds(5));
  EXPECT_LT(server_->counters().bytes_read, 300000u);
  service_.release();
  run(seconds(5));
  EXPECT_TRUE(client->received == fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", body.size(), body));
}

TEST_P(Http1ServerTest, AResetClosesAtOnce) {
  serve();
  EXPECT_EQ(ask("GET /reset HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  EXPECT_TRUE(closed_);
  EXPECT_TRUE(service_.aborts.empty());
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http1ServerTest, TimesOutEachKindOfWait) {
  serve();
  const auto idle = connect(), head = connect(), body = connect(), reader = connect();
  head->send("GET /echo HTTP/1.1\r\nHo");
  body->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
  reader->set_reading(false);
  reader->send("GET /stream?bytes=9000000 HTTP/1.1\r\nHost: a\r\n\r\n");
  run(milliseconds(9900));
  EXPECT_FALSE(head->ended);
  run(seconds(1));
  EXPECT_THAT(head->received, StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(head->ended);
  run(seconds(18));
  EXPECT_FALSE(body->ended);
  EXPECT_TRUE(service_.aborts.empty());
  run(seconds(3));
  EXPECT_THAT(body->received, StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(body->ended);
  ASSERT_EQ(service_.aborts.size(), 2u);
  EXPECT_THAT((std::vector{service_.aborts[0].code, service_.aborts[1].code}),
              ::testing::UnorderedElementsAre(Code::kDeadlineExceeded, Code::kCancelled));
  EXPECT_FALSE(idle->ended);
  run(seconds(280));
  EXPECT_TRUE(idle->ended);
  EXPECT_EQ(server_->counters().timeouts, 3u);
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(Http1ServerTest, DrainsWithoutLosingWhatWasAccepted) {
  serve();
  const auto idle = connect(), busy = connect();
  idle->send("GET /early HTTP/1.1\r\nHost: a\r\n\r\n");
  busy->send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  run();
  bool drained = false;
  server_->drain([&] { drained = true; });
  run();
  EXPECT_TRUE(idle->ended);
  EXPECT_FALSE(busy->ended);
  EXPECT_FALSE(drained);
  const auto late = connect();
  run();
  EXPECT_TRUE(late->ended);
  service_.release();
  run(milliseconds(1200));
  EXPECT_EQ(busy->received, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nheld");
  EXPECT_TRUE(drained);
}

TEST_P(Http1ServerTest, RandomBytesNeverBreakIt) {
  serve();
  Random random(GetParam());
  const std::string base =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (int i = 0; i < 300; ++i) {
    std::string bytes = base + base;
    for (std::uint64_t n = random.below(6); n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    const auto client = connect();
    client->send(bytes);
    run(milliseconds(5));
  }
  run(seconds(40));
  EXPECT_EQ(server_->counters().connections_open, 0u);
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(Http1ServerTest, StoppingAbortsWhatIsOpen) {
  serve();
  const auto client = connect();
  client->send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  run();
  server_.reset();
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kUnavailable);
  run();
  EXPECT_TRUE(client->ended);
  client->close();
  EXPECT_EQ(world_.open_streams(), 0u);
}

}  // namespace
}  // namespace sluice::net
