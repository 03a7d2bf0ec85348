#include "api/rest_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "api/test_server.h"

namespace sluice::api {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJsonRequest =
    R"({"id":"7","inputs":[{"name":"INPUT0","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4.5]]}]})";

TEST(ModelPath, SplitsAndRefusesOtherForms) {
  const auto plain = parse_model_path("/v2/models/m/infer");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->model, "m");
  EXPECT_EQ(plain->version, "");
  EXPECT_EQ(plain->verb, "infer");
  const auto versioned = parse_model_path("/v2/models/m/versions/3");
  ASSERT_TRUE(versioned);
  EXPECT_EQ(versioned->version, "3");
  EXPECT_EQ(versioned->verb, "");
  EXPECT_FALSE(parse_model_path("/v2/models/"));
  EXPECT_FALSE(parse_model_path("/v2/models/m/versions//infer"));
  EXPECT_FALSE(parse_model_path("/v2/models/m/infer/more"));
}

TEST(RestService, HealthMetadataAndDraining) {
  TestServer server;
  server.add_identity("m");
  EXPECT_EQ(server.get("/v2/health/live").status, 200);
  EXPECT_EQ(server.get("/v2/health/ready").status, 200);
  EXPECT_THAT(server.get("/v2").body, HasSubstr(R"("name":"sluice","version":"test")"));
  const auto metadata = server.get("/v2/models/m");
  EXPECT_EQ(metadata.status, 200);
  EXPECT_THAT(metadata.body, HasSubstr(R"("versions":["1"])"));
  EXPECT_THAT(metadata.body, HasSubstr(R"({"name":"INPUT0","datatype":"FP32","shape":[-1,2]})"));
  EXPECT_EQ(server.get("/v2/models/m/versions/1/ready").status, 200);

  server.state().draining = true;
  EXPECT_EQ(server.get("/v2/health/live").status, 200);
  EXPECT_EQ(server.get("/v2/health/ready").status, 503);
  EXPECT_EQ(server.post("/v2/models/m/infer", kJsonRequest).status, 200);
}

TEST(RestService, InfersJsonAndCountsIt) {
  TestServer server;
  server.add_identity("m");
  for (const auto protocol : {net::Protocol::kHttp1, net::Protocol::kHttp2}) {
    const auto response = server.call(net::Method::kPost, "/v2/models/m/infer", kJsonRequest, {}, protocol);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_THAT(response.body, HasSubstr(R"("model_name":"m","model_version":"1","id":"7")"));
    EXPECT_THAT(response.body, HasSubstr(R"("data":[1,2,3,4.5])"));
  }
  const auto stats = server.get("/v2/models/m/stats").body;
  EXPECT_THAT(stats, HasSubstr(R"("inference_count":4,"execution_count":2)"));
  EXPECT_THAT(stats, HasSubstr(R"("success":{"count":2)"));
}

TEST(RestService, InfersBinaryBothWays) {
  TestServer server;
  server.add_identity("m");
  const std::string json =
      R"({"inputs":[{"name":"INPUT0","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],)"
      R"("outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]})";
  const float values[2] = {0.25F, -8.0F};
  const std::string raw(reinterpret_cast<const char*>(values), sizeof values);
  const auto response = server.post("/v2/models/m/infer", json + raw,
                                    {{"inference-header-content-length", std::to_string(json.size())}});
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.get("content-type"), "application/octet-stream");
  const auto length = response.headers.get("inference-header-content-length");
  ASSERT_TRUE(length);
  EXPECT_EQ(response.body.substr(std::stoul(std::string(*length))), raw);
}

TEST(RestService, ErrorsHaveTheirStatusAndNameTheValue) {
  TestServer server;
  server.add_identity("m");
  const auto expect = [&](const net::ClientResponse& response, int status, const std::string& text) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(response.body, HasSubstr("{\"error\":\""));
    EXPECT_THAT(response.body, HasSubstr(text));
  };
  expect(server.get("/v2/models/none"), 404, "'none'");
  expect(server.get("/v2/models/m/versions/9"), 404, "9");
  expect(server.get("/v2/models/m/versions/x"), 400, "'x'");
  expect(server.get("/v2/models/..%2f"), 400, "..%2f");
  expect(server.get("/nothing"), 404, "/nothing");
  expect(server.post("/v2/models/m/generate", "{}"), 501, "generate");
  expect(server.post("/v2/repository/models/m/load", "{}"), 501, "/load");
  expect(server.get("/v2/systemsharedmemory/status"), 501, "systemsharedmemory");
  expect(server.get("/v2/models/m/trace/setting"), 501, "trace");
  expect(server.get("/v2/models/m/infer"), 405, "POST");
  expect(server.post("/v2/models/m", ""), 405, "GET");
  expect(server.post("/v2/models/m/infer", "{"), 400, "JSON");
  expect(server.post("/v2/models/none/infer", kJsonRequest), 404, "'none'");
  expect(server.post("/v2/models/m/infer", R"({"inputs":[{"name":"X","shape":[1,2],"datatype":"FP32","data":[1,2]}]})"),
         400, "X");
  expect(server.post("/v2/models/m/infer",
                     R"({"inputs":[{"name":"INPUT0","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]})"),
         400, "[1,3]");
  expect(server.post("/v2/models/m/infer", kJsonRequest, {{"content-encoding", "gzip"}}), 415, "gzip");
  expect(server.post("/v2/models/m/infer", kJsonRequest, {{"inference-header-content-length", "-1"}}), 400, "-1");
  expect(server.post("/v2/models/m/infer", kJsonRequest, {{"inference-header-content-length", "9999"}}), 400, "9999");
  expect(server.post("/v2/models/m/infer", std::string((1 << 20) + 1, ' ')), 413, "1048576");
  // The server still answers.
  EXPECT_EQ(server.post("/v2/models/m/infer", kJsonRequest).status, 200);
}

TEST(RestService, TheIndexListsAllOrWhatIsReady) {
  TestServer server;
  server.add_identity("m");
  for (const std::string body : {"", "{}", R"({"ready":true})"}) {
    const auto index = server.post("/v2/repository/index", body);
    EXPECT_EQ(index.status, 200) << body;
    EXPECT_EQ(index.body, R"([{"name":"m","version":"1","state":"READY","reason":""}])");
  }
  EXPECT_EQ(server.post("/v2/repository/index", "[]").status, 400);
  EXPECT_EQ(server.post("/v2/repository/index", std::string(70'000, ' ')).status, 413);
}

TEST(RestService, MetricsNameEveryStage) {
  TestServer server;
  server.add_identity("m");
  EXPECT_EQ(server.post("/v2/models/m/infer", kJsonRequest).status, 200);
  const auto page = server.call(net::Method::kGet, "/metrics", "", {}, net::Protocol::kHttp1, true);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("nv_inference_request_success{model=\"m\",version=\"1\"} 1\n"));
  for (const auto stage : kStageNames) {
    EXPECT_THAT(page.body, HasSubstr("stage=\"" + std::string(stage) + "\"")) << stage;
  }
  EXPECT_THAT(page.body,
              HasSubstr("sluice_batches_closed_total{model=\"m\",version=\"1\",reason=\"instance_free\"} 1\n"));
}

}  // namespace
}  // namespace sluice::api
