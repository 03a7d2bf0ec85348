#include "net/grpc_client.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "io/runtime.h"
#include "net/test_service.h"
#include "wire/grpc/framing.h"

namespace sluice::net {
namespace {

using std::chrono::seconds;

ClientResponseHead head(int status, std::initializer_list<std::pair<std::string_view, std::string_view>> fields = {}) {
  ClientResponseHead made;
  made.status = status;
  for (const auto& [name, value] : fields) made.headers.add(name, value);
  return made;
}

Code code(const Status& status) { return status ? Code::kOk : status.error().code; }

TEST(GrpcStatusTest, ComesFromTheTrailersThenTheHeadThenTheHttpStatus) {
  Headers trailers;
  trailers.add("grpc-status", "5");
  trailers.add("grpc-message", "no%20such%20model");
  const Status status = grpc_status(head(200, {{"grpc-status", "0"}}), trailers);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(), (Error{Code::kNotFound, "no such model"}));
  EXPECT_TRUE(grpc_status(head(200, {{"grpc-status", "0"}}), {}));
  EXPECT_EQ(code(grpc_status(head(200), {})), Code::kUnknown);
  EXPECT_EQ(code(grpc_status(head(200, {{"grpc-status", "17"}}), {})), Code::kUnknown);
  EXPECT_EQ(code(grpc_status(head(200, {{"grpc-status", "x"}}), {})), Code::kUnknown);
  EXPECT_EQ(code(grpc_status(head(503), {})), Code::kUnavailable);
  EXPECT_EQ(code(grpc_status(head(404), {})), Code::kUnimplemented);
  EXPECT_EQ(code(grpc_status(head(401), {})), Code::kUnauthenticated);
  EXPECT_EQ(code(grpc_status(head(418), {})), Code::kUnknown);
}

TEST(GrpcRequestTest, CarriesTheTimeThatIsLeft) {
  const Time now{};
  const ClientRequest request = grpc_request("/s/m", frame_message("abc"), now, now + seconds(2));
  EXPECT_EQ(request.target, "/s/m");
  EXPECT_EQ(as_text(request.body[0].view()), std::string_view("\0\0\0\0\3abc", 8));
  ASSERT_EQ(request.headers.size(), 3u);
  EXPECT_EQ(request.headers[2].first, "grpc-timeout");
  EXPECT_EQ(grpc_wire::parse_timeout(request.headers[2].second), seconds(2));
  EXPECT_EQ(grpc_request("/s/m", {}, now, kNever).headers.size(), 2u);
  EXPECT_TRUE(grpc_wire::parse_timeout(grpc_request("/s/m", {}, now, now - seconds(1)).headers[2].second));
}

// Over real sockets: a server on one loop, a client on another.
class RealLoopsTest : public ::testing::Test {
 protected:
  RealLoopsTest() {
    io::run_on(runtime_.loop(0), [this] {
      server_ = std::make_unique<HttpServer>(runtime_.loop(0), service_, ServerLimits{}, nullptr);
      at_ = *server_->listen({.host = "127.0.0.1", .port = 0}, {});
    });
  }
  ~RealLoopsTest() override {
    io::run_on(runtime_.loop(1), [this] { client_.reset(); });
    io::run_on(runtime_.loop(0), [this] { server_.reset(); });
  }
  void connect(Protocol protocol) {
    io::run_on(runtime_.loop(1), [this, protocol] {
      ClientOptions options;
      options.endpoint = at_;
      options.protocol = protocol;
      client_ = std::make_unique<HttpClient>(runtime_.loop(1), options);
    });
  }
  template <class T, class Start>
  T wait(Start start) {
    std::promise<T> promise;
    auto future = promise.get_future();
    io::run_on(runtime_.loop(1), [&] { start(promise); });
    return future.get();
  }

  io::Runtime runtime_{{.loops = 2, .compute = {.threads = 1}}};
  TestService service_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
  io::Endpoint at_;
};

TEST_F(RealLoopsTest, UnaryCallsComeBack) {
  connect(Protocol::kHttp2);
  const auto call = [this](std::string_view path, std::string message) {
    return wait<Result<std::string>>([&](std::promise<Result<std::string>>& promise) {
      const Time now = runtime_.loop(1).now();
      grpc_unary(*client_, path, frame_message(std::move(message)), now, now + seconds(30),
                 [&promise](Result<std::string> result) { promise.set_value(std::move(result)); });
    });
  };
  for (const std::size_t size : {0u, 64u, 4096u, 602112u}) {
    const auto answer = call("/echo", std::string(size, 'g'));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(*answer == std::string(size, 'g'));
  }
  const auto missing = call("/nowhere", "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUnimplemented);
}

TEST_F(RealLoopsTest, LargeBodiesComeBackOverBothProtocols) {
  for (const Protocol protocol : {Protocol::kHttp1, Protocol::kHttp2}) {
    connect(protocol);
    for (const std::size_t size : {0u, 1000u, 602112u, 9000000u}) {
      const auto answer = wait<Result<ClientResponse>>([&](std::promise<Result<ClientResponse>>& promise) {
        ClientRequest request;
        request.method = Method::kPost;
        request.target = "/echo";
        request.body = TestService::text(std::string(size, 'b'));
        client_->send(std::move(request), [&promise](Result<ClientResponse> result) {
          promise.set_value(std::move(result));
        });
      });
      ASSERT_TRUE(answer) << answer.error().message;
      EXPECT_TRUE(answer->body == std::string(size, 'b'));
    }
    io::run_on(runtime_.loop(1), [this] { client_.reset(); });
  }
}

}  // namespace
}  // namespace sluice::net
