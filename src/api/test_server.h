// A replica in the simulator for the tests of api/: one server loop, one client loop, identity models.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/oip_service.h"
#include "engine/identity/identity_engine.h"
#include "io/sim/sim_world.h"
#include "net/client.h"
#include "net/grpc_client.h"
#include "wire/grpc/infer_reader.h"

namespace sluice::api {

class TestServer {
 public:
  explicit TestServer(std::uint64_t seed = 1)
      : world_(seed),
        server_loop_(world_.make_loop("server")),
        client_loop_(world_.make_loop("client")),
        compute_({.threads = 1}),
        arena_({.name = "test"}),
        log_({.level = LogLevel::kOff}, [] { return std::int64_t{0}; }),
        models_(engines_, compute_, server_loop_, log_),
        state_{.models = models_, .arena = arena_, .metadata = {}, .limits = {}, .log = log_} {
    state_.metadata.version = "test";
    state_.max_body_bytes = 1 << 20;
    service_ = make_oip_service(state_);
    metrics_ = make_metrics_service(state_);
    net::ServerLimits limits;
    limits.max_body_bytes = state_.max_body_bytes;
    server_ = std::make_unique<net::HttpServer>(server_loop_, *service_, limits, &log_);
    metrics_server_ = std::make_unique<net::HttpServer>(server_loop_, *metrics_, limits, &log_);
    endpoint_ = *server_->listen({"127.0.0.1", 0}, {});
    metrics_endpoint_ = *metrics_server_->listen({"127.0.0.1", 0}, {});
  }

  ~TestServer() {
    clients_.clear();
    world_.run_for(std::chrono::seconds(1));
  }

  // An identity model "name", version 1: INPUT0 FP32 [-1, dims] -> OUTPUT0, at most 8 rows.
  void add_identity(const std::string& name, bool inline_run = true) {
    ModelConfig config;
    config.name = name;
    config.backend = "identity";
    config.max_batch_size = 8;
    config.inputs = {{.name = "INPUT0", .datatype = DataType::kFp32, .dims = {2}}};
    config.outputs = {{.name = "OUTPUT0", .datatype = DataType::kFp32, .dims = {2}}};
    config.dynamic_batching.emplace();
    config.run_inline = inline_run;
    config.parameters["sluice.inline"] = inline_run ? "true" : "false";
    auto engine = engine::make_identity_engine({compute_, arena_, server_loop_});
    auto model = engine->load({"", config});
    ASSERT_TRUE(model) << model.error().message;
    engines_.add(std::move(engine));
    models_.publish(std::make_shared<serving::ServedModel>(config, "1", *model, server_loop_));
  }

  using HeaderList = std::vector<std::pair<std::string, std::string>>;

  net::ClientResponse call(net::Method method, const std::string& target, std::string body = "",
                           HeaderList headers = {}, net::Protocol protocol = net::Protocol::kHttp1,
                           bool metrics = false) {
    net::ClientRequest request{.method = method, .target = target, .headers = std::move(headers)};
    if (!body.empty()) request.body.emplace_back(std::move(body));
    std::optional<Result<net::ClientResponse>> answer;
    net::HttpClient& client = make_client(protocol, metrics ? metrics_endpoint_ : endpoint_);
    client.send(std::move(request), [&](Result<net::ClientResponse> response) { answer = std::move(response); });
    EXPECT_TRUE(world_.run_until([&] { return answer.has_value(); }, std::chrono::seconds(10))) << target;
    if (!answer || !*answer) {
      ADD_FAILURE() << target << ": " << (answer ? answer->error().message : "no answer");
      return {};
    }
    return std::move(**answer);
  }
  net::ClientResponse get(const std::string& target) { return call(net::Method::kGet, target); }
  net::ClientResponse post(const std::string& target, std::string body, HeaderList headers = {}) {
    return call(net::Method::kPost, target, std::move(body), std::move(headers));
  }

  Result<std::string> grpc(const std::string& method, Payload framed, Time deadline = kNever) {
    std::optional<Result<std::string>> answer;
    net::HttpClient& client = make_client(net::Protocol::kHttp2, endpoint_);
    net::grpc_unary(client, method, std::move(framed), client_loop_.now(), deadline,
                    [&](Result<std::string> message) { answer = std::move(message); });
    EXPECT_TRUE(world_.run_until([&] { return answer.has_value(); }, std::chrono::seconds(10))) << method;
    if (!answer) return fail(Code::kInternal, "no answer");
    return std::move(*answer);
  }

  net::HttpClient& make_client(net::Protocol protocol, const io::Endpoint& endpoint) {
    net::ClientOptions options;
    options.endpoint = endpoint;
    options.protocol = protocol;
    clients_.push_back(std::make_unique<net::HttpClient>(client_loop_, options));
    return *clients_.back();
  }

  io::SimWorld& world() { return world_; }
  io::Loop& client_loop() { return client_loop_; }
  const io::Endpoint& endpoint() const { return endpoint_; }
  ServerState& state() { return state_; }
  serving::ModelRegistry& models() { return models_; }
  Arena& arena() { return arena_; }

 private:
  io::SimWorld world_;
  io::Loop& server_loop_;
  io::Loop& client_loop_;
  io::ComputePool compute_;
  Arena arena_;
  Log log_;
  serving::EngineSet engines_;
  serving::ModelRegistry models_;
  ServerState state_;
  std::unique_ptr<net::Service> service_, metrics_;
  std::unique_ptr<net::HttpServer> server_, metrics_server_;
  io::Endpoint endpoint_, metrics_endpoint_;
  std::vector<std::unique_ptr<net::HttpClient>> clients_;
};

}  // namespace sluice::api
