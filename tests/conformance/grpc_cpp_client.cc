// gRPC C++ (Debian's libgrpc++) against SLUICE_GRPC. Prints a line a case and `N passed, N failed` last.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "health.grpc.pb.h"
#include "inference.grpc.pb.h"

namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using Infer = inference::GRPCInferenceService;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr milliseconds kAnswerWithin{10'000};
constexpr int kConcurrentCalls = 64;
constexpr int kMaxMessageBytes = 64 << 20;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void expect_equal(const auto& got, const auto& expected, std::string_view what) {
  expect(got == expected, std::string(what) + " is not what was expected");
}

std::string text_of(const grpc::Status& status) {
  return std::to_string(status.error_code()) + " '" + status.error_message() + "'";
}

// A datatype: its model (of that name), values as typed contents, and the same as bytes.
struct Sample {
  std::string model;
  std::string datatype;
  std::function<void(inference::InferTensorContents&)> fill;
  std::string raw;
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<Sample> samples() {
  const std::vector<float> floats = {1, 2.5F, -3};
  const std::vector<std::int64_t> integers = {1, -2, 9007199254740993};
  const std::vector<std::string> strings = {"one", "", std::string("t\0wo", 4)};
  const std::vector<std::uint8_t> small = {0, 7, 255};
  using Contents = inference::InferTensorContents;
  return {
      {"fp32", "FP32", [=](Contents& c) { c.mutable_fp32_contents()->Add(floats.begin(), floats.end()); },
       bytes_of(floats)},
      {"int64", "INT64", [=](Contents& c) { c.mutable_int64_contents()->Add(integers.begin(), integers.end()); },
       bytes_of(integers)},
      {"bytes", "BYTES", [=](Contents& c) { c.mutable_bytes_contents()->Add(strings.begin(), strings.end()); },
       std::string("\3\0\0\0one\0\0\0\0\4\0\0\0t\0wo", 19)},
      {"bool", "BOOL", [](Contents& c) { for (const bool b : {true, false, true}) c.add_bool_contents(b); },
       std::string("\1\0\1", 3)},
      {"uint8", "UINT8", [=](Contents& c) { c.mutable_uint_contents()->Add(small.begin(), small.end()); },
       bytes_of(small)},
  };
}

class Client {
 public:
  explicit Client(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = Infer::NewStub(channel_);
    health_ = Health::NewStub(channel_);
  }

  template <typename Request, typename Response>
  using Method = grpc::Status (Infer::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response>
  std::pair<grpc::Status, Response> call(Method<Request, Response> method, const Request& request,
                                         milliseconds within = kAnswerWithin) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + within);
    Response response;
    grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    return {std::move(status), std::move(response)};
  }

  template <typename Request, typename Response>
  Response answer(Method<Request, Response> method, const Request& request) {
    auto [status, response] = call(method, request);
    expect(status.ok(), "status " + text_of(status));
    return std::move(response);
  }

  // The call must be refused with `code` and a message that names `word`.
  template <typename Request, typename Response>
  void refused(Method<Request, Response> method, const Request& request, StatusCode code, std::string_view word) {
    const auto [status, response] = call(method, request);
    expect(status.error_code() == code, "status " + text_of(status) + ", expected " + std::to_string(code));
    expect(status.error_message().find(word) != std::string::npos, text_of(status) + " without " + std::string(word));
  }

  Infer::Stub& stub() { return *stub_; }
  Health::Stub& health() { return *health_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Infer::Stub> stub_;
  std::unique_ptr<Health::Stub> health_;
};

inference::ModelInferRequest request_of(const Sample& sample, std::vector<std::int64_t> shape = {1, 3}) {
  inference::ModelInferRequest request;
  request.set_model_name(sample.model);
  request.set_id("cpp-1");
  auto* input = request.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype(sample.datatype);
  input->mutable_shape()->Add(shape.begin(), shape.end());
  return request;
}

inference::ModelInferRequest raw_request_of(const Sample& sample, std::vector<std::int64_t> shape = {1, 3}) {
  auto request = request_of(sample, std::move(shape));
  request.add_raw_input_contents(sample.raw);
  return request;
}

void check_answer(const inference::ModelInferResponse& response, const Sample& sample) {
  expect_equal(response.model_name(), sample.model, "model_name");
  expect_equal(response.model_version(), "1", "model_version");
  expect_equal(response.id(), "cpp-1", "id");
  expect_equal(response.outputs_size(), 1, "the number of outputs");
  const auto& output = response.outputs(0);
  expect_equal(output.name(), "OUTPUT0", "the output's name");
  expect_equal(output.datatype(), sample.datatype, "the output's datatype");
  expect(output.shape_size() == 2 && output.shape(0) == 1 && output.shape(1) == 3, "the output's shape is not [1,3]");
  expect_equal(response.raw_output_contents_size(), 1, "the number of raw_output_contents");
  expect_equal(response.raw_output_contents(0), sample.raw, "raw_output_contents");
}

template <typename Request>
Request named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

void check_server(Client& client) {
  expect(client.answer(&Infer::Stub::ServerLive, {}).live(), "not live");
  expect(client.answer(&Infer::Stub::ServerReady, {}).ready(), "not ready");
  expect_equal(client.answer(&Infer::Stub::ServerMetadata, {}).name(), "sluice", "the server's name");
}

void check_model(Client& client, const Sample& sample) {
  expect(client.answer(&Infer::Stub::ModelReady, named<inference::ModelReadyRequest>(sample.model)).ready(),
         "not ready");
  const auto metadata =
      client.answer(&Infer::Stub::ModelMetadata, named<inference::ModelMetadataRequest>(sample.model));
  expect_equal(metadata.name(), sample.model, "name");
  expect(metadata.versions_size() == 1 && metadata.versions(0) == "1", "versions are not [1]");
  expect(metadata.inputs_size() == 1 && metadata.outputs_size() == 1, "not one input and one output");
  expect_equal(metadata.inputs(0).name(), "INPUT0", "the input's name");
  expect_equal(metadata.inputs(0).datatype(), sample.datatype, "the input's datatype");
  expect(metadata.inputs(0).shape_size() == 2 && metadata.inputs(0).shape(1) == -1, "the shape is not [-1,-1]");
}

void check_typed(Client& client, const Sample& sample) {
  auto request = request_of(sample);
  sample.fill(*request.mutable_inputs(0)->mutable_contents());
  check_answer(client.answer(&Infer::Stub::ModelInfer, request), sample);
}

void check_raw(Client& client, const Sample& sample) {
  check_answer(client.answer(&Infer::Stub::ModelInfer, raw_request_of(sample)), sample);
}

void check_statistics(Client& client, const Sample& sample) {
  const auto read = [&] {
    const auto all =
        client.answer(&Infer::Stub::ModelStatistics, named<inference::ModelStatisticsRequest>(sample.model));
    expect_equal(all.model_stats_size(), 1, "the number of model_stats");
    return all.model_stats(0);
  };
  const auto before = read();
  check_raw(client, sample);
  const auto after = read();
  expect_equal(after.inference_count(), before.inference_count() + 1, "inference_count");
  expect_equal(after.inference_stats().success().count(), before.inference_stats().success().count() + 1, "success");
  expect(after.last_inference() > 0, "last_inference is 0");
}

void check_large(Client& client, Sample sample) {
  sample.raw = std::string(8 << 20, 's');
  const auto request = raw_request_of(sample, {1, static_cast<std::int64_t>(sample.raw.size() / 4)});
  const auto response = client.answer(&Infer::Stub::ModelInfer, request);
  expect(response.raw_output_contents_size() == 1 && response.raw_output_contents(0) == sample.raw, "other bytes");
}

void check_concurrent(Client& client, const Sample& sample) {
  std::vector<std::string> errors(kConcurrentCalls);
  {
    std::vector<std::jthread> threads;
    for (std::string& error : errors) {
      threads.emplace_back([&client, &sample, &error] {
        try {
          check_raw(client, sample);
        } catch (const std::exception& e) {
          error = e.what();
        }
      });
    }
  }
  for (const std::string& error : errors) expect(error.empty(), error);
}

void check_not_found(Client& client, const Sample& sample) {
  client.refused(&Infer::Stub::ModelReady, named<inference::ModelReadyRequest>("nothing"), StatusCode::NOT_FOUND,
                 "nothing");
  client.refused(&Infer::Stub::ModelMetadata, named<inference::ModelMetadataRequest>("nothing"), StatusCode::NOT_FOUND,
                 "nothing");
  client.refused(&Infer::Stub::ModelStatistics, named<inference::ModelStatisticsRequest>("nothing"),
                 StatusCode::NOT_FOUND, "nothing");
  auto request = raw_request_of(sample);
  request.set_model_name("nothing");
  client.refused(&Infer::Stub::ModelInfer, request, StatusCode::NOT_FOUND, "nothing");
}

void check_invalid(Client& client, const Sample& sample) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 4}, {3}, {-1, 3}, {}}) {
    client.refused(&Infer::Stub::ModelInfer, raw_request_of(sample, shape), StatusCode::INVALID_ARGUMENT, "INPUT0");
  }
  auto request = raw_request_of(sample);
  request.mutable_inputs(0)->set_datatype("INT32");
  client.refused(&Infer::Stub::ModelInfer, request, StatusCode::INVALID_ARGUMENT, "INT32");
  request = raw_request_of(sample);
  request.mutable_inputs(0)->set_name("WRONG");
  client.refused(&Infer::Stub::ModelInfer, request, StatusCode::INVALID_ARGUMENT, "WRONG");
}

void check_deadline(Client& client, Sample sample) {
  sample.model = "slow";
  const auto request = raw_request_of(sample);
  const auto [status, response] = client.call(&Infer::Stub::ModelInfer, request, milliseconds(50));
  expect(status.error_code() == StatusCode::DEADLINE_EXCEEDED, "status " + text_of(status));
  check_answer(client.answer(&Infer::Stub::ModelInfer, request), sample);
}

void check_cancel(Client& client, Sample sample) {
  sample.model = "slow";
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Status status;
  inference::ModelInferResponse response;
  const auto call = client.stub().AsyncModelInfer(&context, raw_request_of(sample), &queue);
  call->Finish(&response, &status, &queue);
  context.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  const auto next = queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kAnswerWithin);
  expect(next == grpc::CompletionQueue::GOT_EVENT, "the call did not end");
  expect(status.error_code() == StatusCode::CANCELLED, "status " + text_of(status));
  check_answer(client.answer(&Infer::Stub::ModelInfer, raw_request_of(sample)), sample);
}

void check_health(Client& client) {
  const auto check = [&](const std::string& service, HealthCheckResponse& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
    HealthCheckRequest request;
    request.set_service(service);
    return client.health().Check(&context, request, &response);
  };
  for (const char* service : {"", "inference.GRPCInferenceService"}) {
    HealthCheckResponse response;
    const grpc::Status status = check(service, response);
    expect(status.ok(), "status " + text_of(status));
    expect(response.status() == HealthCheckResponse::SERVING, "not SERVING");
  }
  HealthCheckResponse response;
  const grpc::Status status = check("nothing", response);
  expect(status.error_code() == StatusCode::NOT_FOUND, "status " + text_of(status));
}

struct Case {
  std::string name;
  std::function<void()> body;
};

std::vector<Case> cases(Client& client, const std::vector<Sample>& all) {
  const Sample& fp32 = all.front();
  std::vector<Case> made = {{"server", [&] { check_server(client); }}};
  for (const Sample& sample : all) {
    made.push_back({"model " + sample.model, [&] { check_model(client, sample); }});
    made.push_back({"infer " + sample.model + ", typed contents", [&] { check_typed(client, sample); }});
    made.push_back({"infer " + sample.model + ", raw contents", [&] { check_raw(client, sample); }});
  }
  made.push_back({"statistics", [&] { check_statistics(client, fp32); }});
  made.push_back({"8 MB there and back", [&] { check_large(client, fp32); }});
  made.push_back({"64 calls at once", [&] { check_concurrent(client, fp32); }});
  made.push_back({"unknown models", [&] { check_not_found(client, fp32); }});
  made.push_back({"wrong requests", [&] { check_invalid(client, fp32); }});
  made.push_back({"a deadline", [&] { check_deadline(client, fp32); }});
  made.push_back({"a cancelled call", [&] { check_cancel(client, fp32); }});
  made.push_back({"health", [&] { check_health(client); }});
  return made;
}

}  // namespace

int main() {
  const char* address = std::getenv("SLUICE_GRPC");
  if (!address) {
    std::fputs("grpc_cpp_client: SLUICE_GRPC is not set, expected address:port\n", stderr);
    return 2;
  }
  Client client(address);
  const std::vector<Sample> all = samples();
  int passed = 0;
  int failed = 0;
  for (const Case& one : cases(client, all)) {
    try {
      one.body();
      std::printf("ok %s\n", one.name.c_str());
      ++passed;
    } catch (const std::exception& error) {
      std::printf("FAILED %s: %s\n", one.name.c_str(), error.what());
      ++failed;
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
