#include "api/grpc_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "api/test_server.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/messages.h"

namespace sluice::api {
namespace {

using ::testing::HasSubstr;

constexpr const char* kService = "/inference.GRPCInferenceService/";

InferRequest request_of(Arena& arena, const std::string& model, const std::vector<float>& values) {
  InferRequest request;
  request.model_name = model;
  Tensor tensor;
  tensor.datatype = DataType::kFp32;
  tensor.shape = {static_cast<std::int64_t>(values.size() / 2), 2};
  tensor.owner = *arena.allocate(values.size() * sizeof(float));
  std::memcpy(tensor.owner.data(), values.data(), values.size() * sizeof(float));
  tensor.data = tensor.owner.bytes();
  request.inputs.push_back({"INPUT0", tensor, {}});
  return request;
}

Result<InferResponse> response_of(Arena& arena, const std::string& message) {
  grpc_wire::InferReader reader(grpc_wire::InferMessage::kResponse, arena, {});
  const auto prefix = grpc_wire::message_prefix(static_cast<std::uint32_t>(message.size()));
  EXPECT_TRUE(reader.feed(as_bytes(std::string_view(prefix.data(), prefix.size()))));
  EXPECT_TRUE(reader.feed(as_bytes(message)));
  return reader.take_response();
}

std::string path(const std::string& method) { return kService + method; }

TEST(GrpcService, LiveReadyAndMetadata) {
  TestServer server;
  server.add_identity("m");
  EXPECT_EQ(grpc_wire::parse_bool(*server.grpc(path("ServerLive"), net::frame_message(""))), true);
  EXPECT_EQ(grpc_wire::parse_bool(*server.grpc(path("ServerReady"), net::frame_message(""))), true);
  const auto ref = grpc_wire::encode_model_ref({"m", ""});
  EXPECT_EQ(grpc_wire::parse_bool(*server.grpc(path("ModelReady"), net::frame_message(ref))), true);
  const auto message = server.grpc(path("ModelMetadata"), net::frame_message(ref));
  ASSERT_TRUE(message) << message.error().message;
  const auto metadata = grpc_wire::parse_model_metadata(*message);
  ASSERT_TRUE(metadata);
  EXPECT_EQ(metadata->versions, std::vector<std::string>{"1"});
  EXPECT_EQ(metadata->inputs.at(0).shape, (Shape{-1, 2}));
  server.state().draining = true;
  EXPECT_EQ(grpc_wire::parse_bool(*server.grpc(path("ServerReady"), net::frame_message(""))), false);
  EXPECT_EQ(grpc_wire::parse_bool(*server.grpc(path("ServerLive"), net::frame_message(""))), true);
}

TEST(GrpcService, InfersInlineAndThroughTheQueue) {
  TestServer server;
  server.add_identity("m");
  const auto message = server.grpc(path("ModelInfer"),
                                   grpc_wire::encode_infer_request(request_of(server.arena(), "m", {1, 2, 3, 4})));
  ASSERT_TRUE(message) << message.error().message;
  const auto response = response_of(server.arena(), *message);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->model_version, "1");
  ASSERT_EQ(response->outputs.size(), 1U);
  EXPECT_EQ(response->outputs[0].name, "OUTPUT0");
  EXPECT_EQ(response->outputs[0].tensor.shape, (Shape{2, 2}));
  float last = 0;
  std::memcpy(&last, response->outputs[0].tensor.data.data() + 12, sizeof last);
  EXPECT_EQ(last, 4.0F);
}

TEST(GrpcService, ErrorsHaveTheirCodeAndText) {
  TestServer server;
  server.add_identity("m");
  const auto unknown = server.grpc(path("ModelInfer"),
                                   grpc_wire::encode_infer_request(request_of(server.arena(), "none", {1, 2})));
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("'none'"));

  auto wide = request_of(server.arena(), "m", std::vector<float>(18, 0));
  const auto too_many = server.grpc(path("ModelInfer"), grpc_wire::encode_infer_request(wide));
  EXPECT_EQ(too_many.error().code, Code::kInvalidArgument);
  EXPECT_THAT(too_many.error().message, HasSubstr("8"));

  EXPECT_EQ(server.grpc(path("ModelInfer"), net::frame_message("\xff\xff\xff")).error().code, Code::kInvalidArgument);
  EXPECT_EQ(server.grpc(path("ModelInfer"), {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(server.grpc(path("Nothing"), net::frame_message("")).error().code, Code::kUnimplemented);
  EXPECT_EQ(server.grpc(path("ModelReady"), net::frame_message(grpc_wire::encode_model_ref({"none", ""}))).error().code,
            Code::kNotFound);
  Payload compressed;
  compressed.emplace_back(std::string("\x01\0\0\0\0", 5));
  EXPECT_EQ(server.grpc(path("ServerLive"), std::move(compressed)).error().code, Code::kUnimplemented);
}

TEST(GrpcService, RefusesAMalformedTimeoutAndAMethodThatIsNotPost) {
  TestServer server;
  server.add_identity("m");
  const auto bad_timeout = server.call(
      net::Method::kPost, path("ServerLive"), std::string(5, '\0'),
      {{"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-timeout", "1x"}}, net::Protocol::kHttp2);
  const auto status = bad_timeout.trailers.get("grpc-status") ? bad_timeout.trailers.get("grpc-status")
                                                              : bad_timeout.headers.get("grpc-status");
  EXPECT_EQ(status, "3");
  const auto get = server.call(net::Method::kGet, path("ServerLive"), "", {{"content-type", "application/grpc"}},
                               net::Protocol::kHttp2);
  EXPECT_EQ(get.trailers.get("grpc-status") ? get.trailers.get("grpc-status") : get.headers.get("grpc-status"), "12");
}

TEST(GrpcService, ConfigIndexAndStatistics) {
  TestServer server;
  server.add_identity("m");
  const auto ref = grpc_wire::encode_model_ref({"m", "1"});
  const auto config = server.grpc(path("ModelConfig"), net::frame_message(ref));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(*config, HasSubstr("identity"));
  const auto index = server.grpc(path("RepositoryIndex"), net::frame_message(""));
  ASSERT_TRUE(index);
  EXPECT_THAT(*index, HasSubstr("READY"));
  EXPECT_TRUE(server.grpc(path("ModelStatistics"), net::frame_message(ref)));
  const auto unknown = net::frame_message(grpc_wire::encode_model_ref({"none", ""}));
  EXPECT_EQ(server.grpc(path("ModelConfig"), unknown).error().code, Code::kNotFound);
}

TEST(GrpcService, HealthFollowsReadiness) {
  TestServer server;
  server.add_identity("m");
  const auto check = [&](const std::string& service) {
    const std::string message =
        service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
    return server.grpc("/grpc.health.v1.Health/Check", net::frame_message(message));
  };
  EXPECT_EQ(check(""), grpc_wire::encode_health_response(grpc_wire::HealthStatus::kServing));
  EXPECT_EQ(check("inference.GRPCInferenceService"),
            grpc_wire::encode_health_response(grpc_wire::HealthStatus::kServing));
  EXPECT_EQ(check("other").error().code, Code::kNotFound);
  server.state().draining = true;
  EXPECT_EQ(check(""), grpc_wire::encode_health_response(grpc_wire::HealthStatus::kNotServing));
}

}  // namespace
}  // namespace sluice::api
