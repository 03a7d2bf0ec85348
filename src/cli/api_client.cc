#include "cli/api_client.h"

#include <fmt/format.h>

#include <future>

#include "net/grpc_client.h"
#include "wire/oip/json.h"

namespace sluice::cli {
namespace {

io::Runtime::Options client_runtime() {
  io::Runtime::Options options;
  options.loops = 1;
  options.compute.threads = 1;
  return options;
}

Code code_of_status(int status) {
  switch (status) {
    case 400: return Code::kInvalidArgument;
    case 404: return Code::kNotFound;
    case 429: return Code::kResourceExhausted;
    case 503: return Code::kUnavailable;
    case 504: return Code::kDeadlineExceeded;
    default: return Code::kUnknown;
  }
}

}  // namespace

std::string model_path(const std::string& model, const std::string& version) {
  return version.empty() ? "/v2/models/" + model : "/v2/models/" + model + "/versions/" + version;
}

ApiClient::ApiClient(const io::Endpoint& endpoint, net::Protocol protocol, Duration timeout)
    : runtime_(client_runtime()), arena_({.name = "client"}), timeout_(timeout) {
  io::run_on(loop(), [&] {
    net::ClientOptions options;
    options.endpoint = endpoint;
    options.protocol = protocol;
    client_ = std::make_unique<net::HttpClient>(loop(), options);
  });
}

ApiClient::~ApiClient() {
  io::run_on(loop(), [this] { client_.reset(); });
}

Time ApiClient::deadline() { return saturating_add(loop().now(), timeout_); }

Result<net::ClientResponse> ApiClient::call(net::Method method, std::string target, Payload body,
                                            std::vector<std::pair<std::string, std::string>> headers) {
  std::promise<Result<net::ClientResponse>> promise;
  auto future = promise.get_future();
  io::run_on(loop(), [&] {
    net::ClientRequest request{method, target, std::move(headers), std::move(body), deadline()};
    client_->send(std::move(request),
                  [&](Result<net::ClientResponse> response) { promise.set_value(std::move(response)); });
  });
  auto response = future.get();
  if (response && response->status >= 400) {
    return fail(code_of_status(response->status),
                fmt::format("{} {}", response->status, oip::parse_error(response->body)));
  }
  return response;
}

Result<std::string> ApiClient::grpc(std::string_view path, Payload framed) {
  std::promise<Result<std::string>> promise;
  auto future = promise.get_future();
  io::run_on(loop(), [&] {
    net::grpc_unary(*client_, path, std::move(framed), loop().now(), deadline(),
                    [&](Result<std::string> message) { promise.set_value(std::move(message)); });
  });
  return future.get();
}

Result<ModelMetadata> ApiClient::model_metadata(const std::string& model, const std::string& version) {
  auto response = call(net::Method::kGet, model_path(model, version));
  if (!response) return std::unexpected(std::move(response.error()));
  return oip::parse_model_metadata(response->body);
}

}  // namespace sluice::cli
