#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/api_client.h"
#include "cli/commands.h"
#include "cli/request_builder.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/infer_reader.h"
#include "wire/oip/json.h"

namespace sluice::cli {
namespace {

struct InferFlags {
  std::string model, version;
  std::string url = "127.0.0.1:8000";
  RequestFlags request;
  bool grpc = false, json = false;
  double timeout_s = 60;
};

std::string payload_text(const Payload& payload) {
  std::string text;
  for (const Slice& slice : payload) text += as_text(slice.view());
  return text;
}

Result<InferResponse> infer_grpc(ApiClient& client, InferRequest request) {
  auto message = client.grpc("/inference.GRPCInferenceService/ModelInfer", grpc_wire::encode_infer_request(request));
  if (!message) return std::unexpected(std::move(message.error()));
  grpc_wire::InferReader reader(grpc_wire::InferMessage::kResponse, client.arena(), {});
  const auto prefix = grpc_wire::message_prefix(static_cast<std::uint32_t>(message->size()));
  if (auto status = reader.feed(as_bytes(std::string_view(prefix.data(), prefix.size()))); !status)
    return std::unexpected(status.error());
  if (auto status = reader.feed(as_bytes(*message)); !status) return std::unexpected(status.error());
  return reader.take_response();
}

Result<InferResponse> infer_rest(ApiClient& client, InferRequest request, const std::string& version) {
  request.binary_output_default = true;
  oip::EncodedJson encoded = oip::encode_infer_request(request, true);
  std::vector<std::pair<std::string, std::string>> headers = {{"content-type", "application/json"}};
  if (encoded.json_length) {
    headers = {{"content-type", "application/octet-stream"},
               {"inference-header-content-length", std::to_string(*encoded.json_length)}};
  }
  auto response = client.call(net::Method::kPost, model_path(request.model_name, version) + "/infer",
                              std::move(encoded.payload), std::move(headers));
  if (!response) return std::unexpected(std::move(response.error()));

  const auto header = response->headers.get("inference-header-content-length");
  const std::size_t json_length = header ? std::stoul(std::string(*header)) : response->body.size();
  if (json_length > response->body.size()) return fail(Code::kDataLoss, "the response is shorter than its header says");
  auto binary = client.arena().allocate(response->body.size() - json_length);
  if (!binary) return std::unexpected(std::move(binary.error()));
  std::copy_n(response->body.data() + json_length, binary->size(), reinterpret_cast<char*>(binary->data()));
  std::string json = response->body.substr(0, json_length);
  json.append(64, '\0');
  oip::JsonBody body{.json = std::string_view(json).substr(0, json_length)};
  body.binary = {DataType::kUint8, {static_cast<std::int64_t>(binary->size())}, binary->bytes(), *binary};
  return oip::parse_infer_response(body, client.arena(), {});
}

// One line an output: its name, type, shape and first values.
void print_outputs(const InferResponse& response) {
  constexpr std::size_t kMaxValuesShown = 240;
  for (const OutputTensor& output : response.outputs) {
    InferResponse one;
    one.outputs.push_back({"", output.tensor, {}});
    std::string json = payload_text(oip::encode_infer_response(one, {}).payload);
    const auto data = json.find("\"data\":");
    std::string values = data == std::string::npos ? "(binary)" : json.substr(data + 7, json.rfind("}]") - data - 7);
    if (values.size() > kMaxValuesShown) values = values.substr(0, values.rfind(',', kMaxValuesShown)) + ", ...]";
    fmt::print("{} {}{} {}\n", output.name, datatype_name(output.tensor.datatype), shape_to_string(output.tensor.shape),
               values);
  }
}

int fail_with(const Error& error) {
  fmt::print(stderr, "sluice infer: {}\n", error.message);
  return error.code == Code::kInvalidArgument ? 2 : 1;
}

int infer(const InferFlags& flags) {
  const auto endpoint = io::parse_endpoint(flags.url);
  if (!endpoint) return fail_with(endpoint.error());
  const auto timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.timeout_s));
  ApiClient client(*endpoint, flags.grpc ? net::Protocol::kHttp2 : net::Protocol::kHttp1, timeout);
  const auto metadata = client.model_metadata(flags.model, flags.version);
  if (!metadata) return fail_with(metadata.error());
  auto request = build_request(flags.request, *metadata, client.arena());
  if (!request) return fail_with(request.error());
  request->model_version = flags.version;
  const auto response = flags.grpc ? infer_grpc(client, std::move(*request))
                                   : infer_rest(client, std::move(*request), flags.version);
  if (!response) return fail_with(response.error());
  if (flags.json) {
    fmt::print("{}\n", payload_text(oip::encode_infer_response(*response, {}).payload));
  } else {
    print_outputs(*response);
  }
  return 0;
}

}  // namespace

void add_infer_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("infer", "Send one inference request to a running server");
  auto flags = std::make_shared<InferFlags>();
  command->add_option("model", flags->model, "The model's name")->required();
  command->add_option("--version", flags->version, "The model's version; default: the server's choice");
  command->add_option("--url", flags->url, "The server's address")->capture_default_str();
  command->add_flag("--grpc", flags->grpc, "Over gRPC instead of HTTP");
  command->add_option("--input,-i", flags->request.inputs, "NAME=VALUE: zeros, random, @file.npy, @raw-file or JSON");
  command->add_option("--shape", flags->request.shapes, "NAME=1,3,224,224 where the model leaves it open");
  command->add_option("--output,-o", flags->request.outputs, "An output to ask for; default: all");
  command->add_option("--seed", flags->request.seed, "Of random values")->capture_default_str();
  command->add_flag("--json", flags->json, "Print the whole response as JSON");
  command->add_option("--timeout", flags->timeout_s, "Seconds")->capture_default_str()->check(CLI::PositiveNumber);
  command->callback([flags, &exit_code] { exit_code = infer(*flags); });
}

}  // namespace sluice::cli
