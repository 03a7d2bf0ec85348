// Client and server together, over both protocols, in the simulated world.
#include "net/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>

#include "io/sim/sim_world.h"
#include "net/test_service.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::HasSubstr;

class ClientServerTest : public ::testing::TestWithParam<std::tuple<Protocol, std::uint64_t>> {
 protected:
  Protocol protocol() const { return std::get<0>(GetParam()); }
  bool http2() const { return protocol() == Protocol::kHttp2; }

  void serve(const ServerLimits& limits = {}) {
    server_.emplace(server_loop_, service_, limits, nullptr);
    at_ = *server_->listen({.host = "server", .port = 0}, {});
  }
  void connect(ClientOptions options = {}) {
    options.endpoint = at_;
    options.protocol = protocol();
    client_.emplace(client_loop_, options);
  }
  void run(Duration time = seconds(1)) { world_.run_for(time); }

  CallId send(ClientRequest request) {
    const std::size_t index = results_.size();
    results_.emplace_back();
    return client_->send(std::move(request), [this, index](Result<ClientResponse> result) {
      EXPECT_FALSE(results_[index].has_value()) << "told twice";
      results_[index] = std::move(result);
    });
  }
  static ClientRequest get(std::string target) {
    ClientRequest request;
    request.target = std::move(target);
    return request;
  }
  static ClientRequest post(std::string target, std::string body) {
    ClientRequest request = get(std::move(target));
    request.method = Method::kPost;
    request.body = TestService::text(std::move(body));
    return request;
  }
  // Sends and waits.
  Result<ClientResponse> ask(ClientRequest request, Duration limit = seconds(20)) {
    const std::size_t index = results_.size();
    send(std::move(request));
    if (!world_.run_until([&] { return results_[index].has_value(); }, limit)) return fail(Code::kUnknown, "no result");
    return std::move(*results_[index]);
  }
  std::string random_body(std::size_t size) {
    std::string body(size, '\0');
    for (char& c : body) c = static_cast<char>(world_.random().next());
    return body;
  }
  std::size_t finished() const {
    return static_cast<std::size_t>(std::ranges::count_if(results_, [](const auto& r) { return r.has_value(); }));
  }
  std::vector<Code> codes() const {
    std::vector<Code> codes;
    for (const auto& result : results_) {
      codes.push_back(!result ? Code::kUnknown : *result ? Code::kOk : result->error().code);
    }
    return codes;
  }

  io::SimWorld world_{std::get<1>(GetParam())};
  io::Loop& server_loop_ = world_.make_loop("server");
  io::Loop& client_loop_ = world_.make_loop("client");
  std::vector<std::optional<Result<ClientResponse>>> results_;
  TestService service_;
  std::optional<HttpServer> server_;
  std::optional<HttpClient> client_;
  io::Endpoint at_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ClientServerTest,
                         ::testing::Combine(::testing::Values(Protocol::kHttp1, Protocol::kHttp2),
                                            ::testing::Range<std::uint64_t>(1, 7)));

TEST_P(ClientServerTest, BodiesOfEverySizeComeBack) {
  serve();
  connect();
  for (const std::size_t size : {0u, 1u, 5u, 2047u, 2048u, 2049u, 16383u, 16384u, 16385u, 70000u, 602117u, 8388608u}) {
    world_.network().window_bytes = 1 + world_.random().below(300000);
    world_.network().max_piece_bytes = 1 + world_.random().below(80000);
    const std::string body = random_body(size);
    for (const char* path : {"/echo", "/place"}) {
      if (path == std::string("/place") && size > 1000000 && http2()) continue;
      auto response = ask(post(path, body), seconds(300));
      ASSERT_TRUE(response) << response.error().message;
      EXPECT_EQ(response->status, 200);
      EXPECT_TRUE(response->body == body) << path << ' ' << size;
      EXPECT_EQ(response->headers.get("content-length"), std::to_string(size));
    }
  }
  EXPECT_EQ(client_->open_connections(), 1u);
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_TRUE(service_.aborts.empty());
}

TEST_P(ClientServerTest, ManyAtOnceGetTheirOwnAnswers) {
  serve();
  connect({.max_connections = 3});
  std::vector<std::string> bodies;
  for (int i = 0; i < 300; ++i) {
    bodies.push_back(fmt::format("{}:{}", i, random_body(world_.random().below(3000))));
    send(post("/echo", bodies.back()));
  }
  run(seconds(20));
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    ASSERT_TRUE(results_[i] && *results_[i]) << i;
    EXPECT_TRUE((*results_[i])->body == bodies[i]) << i;
  }
  EXPECT_GE(client_->open_connections(), 2u);
  EXPECT_EQ(client_->open_calls(), 0u);
  EXPECT_EQ(server_->counters().requests, 300u);
  EXPECT_EQ(server_->counters().requests_open, 0u);
}

TEST_P(ClientServerTest, HeadersAndTrailersArriveAsSent) {
  serve();
  connect();
  ClientRequest request = post("/echo?a=b", "x");
  request.headers = {{"content-type", "text/x-test"}, {"x-long", std::string(5000, 'h')}};
  const auto response = ask(std::move(request));
  ASSERT_TRUE(response);
  EXPECT_EQ(service_.last_target, "/echo?a=b");
  EXPECT_EQ(response->headers.get("content-type"), "text/x-test");
  const auto streamed = ask(get("/stream?bytes=12345"));
  ASSERT_TRUE(streamed);
  EXPECT_TRUE(streamed->body == std::string(12345, 's'));
  EXPECT_EQ(streamed->trailers.get("streamed"), "all");
}

TEST_P(ClientServerTest, AHeadRequestHasNoBody) {
  serve();
  connect();
  for (const char* target : {"/early", "/stream?bytes=5000", "/echo"}) {
    ClientRequest request = get(target);
    request.method = Method::kHead;
    const auto response = ask(std::move(request));
    ASSERT_TRUE(response) << target;
    EXPECT_EQ(response->body, "");
  }
}

TEST_P(ClientServerTest, AnEarlyAnswerEndsTheRequest) {
  serve();
  connect();
  for (int i = 0; i < 3; ++i) {
    const auto response = ask(post("/early", std::string(5000000, 'x')));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "early");
  }
  run();
  EXPECT_LT(server_->counters().bytes_read, 10000000u);
}

TEST_P(ClientServerTest, CancellingTellsTheServer) {
  serve();
  connect();
  const CallId held = send(get("/hold"));
  const CallId unfinished = send(post("/echo", std::string(3000000, 'x')));
  client_->cancel(99);  // no such call
  run(milliseconds(3));
  client_->cancel(held);
  client_->cancel(unfinished);
  client_->cancel(held);  // over already
  EXPECT_EQ(finished(), 0u);  // never from inside of cancel()
  run();
  EXPECT_THAT(codes(), Each(Code::kCancelled));
  for (const Error& abort : service_.aborts) EXPECT_EQ(abort.code, Code::kCancelled);
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_EQ(server_->counters().requests_open, 0u);
  EXPECT_TRUE(ask(get("/early")));
}

TEST_P(ClientServerTest, CancelledAtRandomTimesNothingIsLostOrToldTwice) {
  serve();
  connect({.max_connections = 4});
  std::vector<CallId> ids;
  for (int i = 0; i < 200; ++i) {
    const char* targets[] = {"/hold", "/echo", "/early", "/stream?bytes=50000", "/reset", "/pause"};
    ids.push_back(send(post(targets[world_.random().below(6)], random_body(world_.random().below(40000)))));
    if (world_.random().chance(0.5)) client_->cancel(ids[world_.random().below(ids.size())]);
    world_.run_for(std::chrono::microseconds(world_.random().below(300)));
  }
  for (int i = 0; i < 100; ++i) {
    service_.release();
    run(milliseconds(20));
  }
  for (const CallId id : ids) client_->cancel(id);
  run();
  EXPECT_EQ(finished(), 200u);
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_EQ(server_->counters().requests_open, 0u);
}

// Cancels its own call from inside of the chosen callback, and asks again from its last one.
class Quitter final : public ResponseHandler {
 public:
  enum class When : std::uint8_t { kHead, kData };
  Quitter(HttpClient& client, When when, std::vector<Code>& told) : client_(client), when_(when), told_(told) {}

  void on_head(ClientResponseHead) override { quit(When::kHead); }
  void on_data(Bytes) override {
    EXPECT_FALSE(quit_) << "data after cancel()";
    quit(When::kData);
  }
  void on_end(const Headers&) override { ADD_FAILURE() << "it was cancelled"; }
  void on_error(const Error& error) override {
    told_.push_back(error.code);
    client_.send(ClientRequest{.target = "/early"}, [&told = told_](Result<ClientResponse> response) {
      told.push_back(response ? Code::kOk : response.error().code);
    });
  }
  CallId id = 0;

 private:
  void quit(When when) {
    if (when != when_) return;
    quit_ = true;
    client_.cancel(id);
  }

  HttpClient& client_;
  const When when_;
  std::vector<Code>& told_;
  bool quit_ = false;
};

TEST_P(ClientServerTest, ACallMayBeCancelledFromItsOwnCallbacks) {
  serve();
  connect();
  for (const Quitter::When when : {Quitter::When::kHead, Quitter::When::kData}) {
    std::vector<Code> told;
    auto handler = std::make_unique<Quitter>(*client_, when, told);
    Quitter& quitter = *handler;
    quitter.id = client_->send(post("/echo", random_body(300000)), std::move(handler));
    run();
    EXPECT_THAT(told, ::testing::ElementsAre(Code::kCancelled, Code::kOk));
  }
  EXPECT_EQ(client_->open_calls(), 0u);
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(ClientServerTest, ADeadlineEndsTheCallOnBothSides) {
  serve();
  connect();
  ClientRequest request = get("/hold");
  request.deadline = client_loop_.now() + milliseconds(100);
  const Time before = client_loop_.now();
  const auto response = ask(std::move(request));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kDeadlineExceeded);
  EXPECT_GE(client_loop_.now() - before, milliseconds(100));
  EXPECT_LT(client_loop_.now() - before, milliseconds(101));
  run(milliseconds(10));
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(ClientServerTest, BreakingNetworksEndEveryCallOnce) {
  serve();
  connect({.max_connections = 2});
  world_.network().reset_chance = 0.02;
  for (int i = 0; i < 150; ++i) {
    const char* target = world_.random().chance(0.5) ? "/echo" : "/stream?bytes=20000";
    send(post(target, random_body(world_.random().below(20000))));
    world_.run_for(milliseconds(1));
  }
  run(seconds(60));
  EXPECT_EQ(finished(), 150u);
  EXPECT_THAT(codes(), Each(::testing::AnyOf(Code::kOk, Code::kUnavailable)));
  EXPECT_EQ(service_.handlers, 0);
  EXPECT_EQ(server_->counters().requests_open, 0u);
  world_.network().reset_chance = 0;
  EXPECT_TRUE(ask(get("/early")));
}

TEST_P(ClientServerTest, DrainingUnderLoadLosesNothingAccepted) {
  serve();
  connect({.max_connections = 4});
  for (int i = 0; i < 100; ++i) {
    send(post("/echo", random_body(world_.random().below(100000))));
    world_.run_for(std::chrono::microseconds(world_.random().below(100)));
  }
  bool drained = false;
  server_->drain([&] { drained = true; });
  run(seconds(30));
  EXPECT_TRUE(drained);
  EXPECT_EQ(finished(), 100u);
  // What was not accepted fails as unavailable; what the service saw was answered.
  EXPECT_THAT(codes(), Each(::testing::AnyOf(Code::kOk, Code::kUnavailable)));
  const auto all = codes();
  EXPECT_GE(std::ranges::count(all, Code::kOk), service_.opened);
  EXPECT_TRUE(service_.aborts.empty());
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(ClientServerTest, AStreamRunsAheadOfItsReaderByTheLimitOnly) {
  ServerLimits limits;
  limits.max_unsent_bytes = 100000;
  serve(limits);
  connect({.max_connections = 2, .stream_window_bytes = 65535, .connection_window_bytes = 65535});
  send(get("/stream?bytes=10000000"));
  world_.network().window_bytes = 20000;
  for (int i = 0; i < 100; ++i) {
    run(milliseconds(1));
    constexpr std::size_t kOutputBytes = 600000;  // what waits for the socket
    EXPECT_LE(service_.written, server_->counters().bytes_written + limits.max_unsent_bytes + kOutputBytes);
  }
  EXPECT_GT(service_.written, 100000u);
  EXPECT_TRUE(ask(get("/early")));
}

TEST_P(ClientServerTest, LimitsOfTheResponseAreKept) {
  serve();
  connect({.max_header_bytes = 2000, .max_body_bytes = 10000});
  EXPECT_TRUE(ask(post("/echo", std::string(10000, 'x'))));
  auto response = ask(post("/echo", std::string(10001, 'x')));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kResourceExhausted);
  response = ask(get("/stream?bytes=1000000"));
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("10000"));
  ClientRequest request = post("/echo", "x");
  request.headers = {{"content-type", std::string(3000, 'h')}};
  response = ask(std::move(request));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(ask(get("/early")));
  run();
  EXPECT_EQ(service_.handlers, 0);
}

TEST_P(ClientServerTest, TheServersLimitsAnswerWithTheirNames) {
  serve({.max_header_bytes = 3000, .max_body_bytes = 10000});
  connect();
  auto response = ask(post("/echo", std::string(10001, 'x')));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, R"({"error":"the request's body has 10001 bytes, the limit is 10000"})");
  ClientRequest request = post("/echo", "x");
  request.headers = {{"x-long", std::string(4000, 'h')}};
  response = ask(std::move(request));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 431);
  EXPECT_THAT(response->body, HasSubstr("the limit is 3000"));
  EXPECT_TRUE(ask(get("/early")));
}

TEST_P(ClientServerTest, WaitingRequestsAreBounded) {
  serve();
  connect({.max_connections = 1, .max_streams = 2, .max_waiting = 5});
  for (int i = 0; i < 20; ++i) send(get("/hold"));
  run();
  const std::size_t served = http2() ? 2 : 1;
  EXPECT_EQ(service_.held(), served);
  // Those sent before the connection stood waited too.
  EXPECT_EQ(finished(), 15u);
  for (int i = 0; i < 10; ++i) {
    service_.release();
    run(milliseconds(100));
  }
  const auto all = codes();
  EXPECT_EQ(std::ranges::count(all, Code::kOk), 5);
  EXPECT_EQ(std::ranges::count(all, Code::kResourceExhausted), 15);
}

TEST_P(ClientServerTest, NobodyListensIsUnavailable) {
  serve();
  connect();
  server_.reset();
  const auto response = ask(get("/early"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_P(ClientServerTest, AServerThatStopsFailsTheCall) {
  serve();
  connect();
  send(get("/hold"));
  run(milliseconds(20));
  server_.reset();
  run();
  EXPECT_THAT(codes(), Each(Code::kUnavailable));
  ASSERT_EQ(service_.aborts.size(), 1u);
  EXPECT_EQ(service_.aborts[0].code, Code::kUnavailable);
}

TEST_P(ClientServerTest, ClosingTheClientCancelsItsCalls) {
  serve();
  connect();
  send(get("/hold"));
  run(milliseconds(20));
  client_.reset();
  EXPECT_THAT(codes(), Each(Code::kCancelled));
  run();
  EXPECT_EQ(service_.handlers, 0);
  server_.reset();
  EXPECT_EQ(world_.open_streams(), 0u);
}

TEST_P(ClientServerTest, IdleConnectionsCloseOnTheSideThatIsTiredFirst) {
  serve();
  connect({.idle_timeout = seconds(10)});
  EXPECT_TRUE(ask(get("/early")));
  run(seconds(9));
  EXPECT_EQ(client_->open_connections(), 1u);
  run(seconds(3));
  EXPECT_EQ(client_->open_connections(), 0u);
  EXPECT_EQ(server_->counters().connections_open, 0u);
  EXPECT_TRUE(ask(get("/early")));
}

TEST_P(ClientServerTest, APausedBodyIsHeldByFlowControl) {
  serve();
  connect();
  const std::string body = random_body(3000000);
  send(post("/pause", body));
  run(seconds(5));
  EXPECT_LT(server_->counters().bytes_read, 1500000u);
  service_.release();
  run(seconds(10));
  ASSERT_TRUE(results_[0] && *results_[0]);
  EXPECT_TRUE((*results_[0])->body == body);
}

TEST_P(ClientServerTest, AResetIsAnError) {
  serve();
  connect();
  const auto response = ask(get("/reset"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, http2() ? Code::kInternal : Code::kUnavailable);
  EXPECT_TRUE(service_.aborts.empty());
}

TEST_P(ClientServerTest, TheSameSeedGivesTheSameHistory) {
  const auto history = [](std::uint64_t seed, Protocol protocol) {
    io::SimWorld world(seed);
    TestService service;
    HttpServer server(world.make_loop("server"), service, {}, nullptr);
    const auto at = *server.listen({.host = "server", .port = 0}, {});
    HttpClient client(world.make_loop("client"), {.endpoint = at, .protocol = protocol});
    for (int i = 0; i < 20; ++i) client.send(post("/echo", std::string(i * 1000, 'x')), [](Result<ClientResponse>) {});
    world.run_for(seconds(5));
    return world.digest();
  };
  EXPECT_EQ(history(std::get<1>(GetParam()), protocol()), history(std::get<1>(GetParam()), protocol()));
}

}  // namespace
}  // namespace sluice::net
