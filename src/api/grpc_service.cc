#include "api/grpc_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "api/answers.h"
#include "api/errors.h"
#include "api/infer_call.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/messages.h"
#include "wire/grpc/repository_messages.h"
#include "wire/grpc/statistics.h"

namespace sluice::api {
namespace {

// The requests of everything but inference are a name and a version.
inline constexpr std::size_t kMaxSmallMessageBytes = 64 * 1024;

// A message's length is 32 bits (gRPC) and protobuf's own limit is 2 GiB; the rest is for the outputs' metadata.
inline constexpr std::size_t kMaxResponseBytes = (std::size_t{2} << 30) - (std::size_t{16} << 20);

// When the client gives up: grpc-timeout counts from the head's arrival. An error when it is malformed.
Result<Time> client_deadline(const net::RequestHead& head) {
  const auto timeout = head.headers.get("grpc-timeout");
  if (!timeout) return kNever;
  const auto duration = grpc_wire::parse_timeout(*timeout);
  if (!duration) {
    return fail(Code::kInvalidArgument,
                fmt::format("grpc-timeout '{}' is malformed: expected 1 to 8 digits and one of H M S m u n", *timeout));
  }
  return saturating_add(head.received, *duration);
}

class GrpcInferHandler final : public InferHandler {
 public:
  GrpcInferHandler(ServerState& state, net::Exchange& exchange, Time deadline)
      : InferHandler(state, exchange),
        deadline_(deadline),
        reader_(grpc_wire::InferMessage::kRequest, state.arena,
                {.max_message_bytes = state.max_body_bytes, .request = state.limits}) {}

  MutableBytes body_target() override { return reader_.tensor_tail(); }
  void on_placed(std::size_t bytes) override { check(reader_.placed(bytes)); }
  void on_data(Bytes chunk) override { check(reader_.feed(chunk)); }

  void on_end() override {
    if (failed_) return;
    if (!reader_.complete()) return send_error({Code::kInvalidArgument, "the stream ended inside of a message"});
    auto request = reader_.take_request();
    if (!request) return send_error(request.error());
    const std::string model = std::move(request->model_name);
    const std::string version = std::move(request->model_version);
    start(std::move(*request), model, version, deadline_);
  }

 private:
  void check(const Status& status) {
    if (status || failed_) return;
    failed_ = true;
    send_error(status.error());
  }
  void send_response(InferResponse response) override {
    std::size_t bytes = 0;
    for (const OutputTensor& output : response.outputs) bytes += output.tensor.data.size();
    if (bytes > kMaxResponseBytes) {
      return send_error({Code::kResourceExhausted,
                         fmt::format("the outputs have {} bytes, a gRPC response takes {}", bytes, kMaxResponseBytes)});
    }
    respond_grpc(exchange_, grpc_wire::encode_infer_response(response));
  }
  void send_error(const Error& error) override { respond_grpc_error(exchange_, error); }

  Time deadline_;
  grpc_wire::InferReader reader_;
  bool failed_ = false;
};

// A method that takes one small message and answers at once.
using SmallMethod = Result<std::string> (*)(ServerState& state, std::string_view message);

class SmallHandler final : public net::RequestHandler {
 public:
  SmallHandler(ServerState& state, net::Exchange& exchange, SmallMethod method)
      : state_(state), exchange_(exchange), method_(method) {}

  void on_data(Bytes chunk) override {
    if (failed_) return;
    if (received_.size() + chunk.size() > grpc_wire::kPrefixBytes + kMaxSmallMessageBytes) {
      return answer_error({Code::kResourceExhausted,
                           fmt::format("the message is larger than {} bytes", kMaxSmallMessageBytes)});
    }
    received_ += as_text(chunk);
  }

  void on_end() override {
    if (failed_) return;
    const auto message = unframe();
    if (!message) return answer_error(message.error());
    auto answer = method_(state_, *message);
    if (!answer) return answer_error(answer.error());
    respond_grpc_message(exchange_, std::move(*answer));
  }

  void on_abort(const Error&) override {}

 private:
  Result<std::string_view> unframe() const {
    if (received_.size() < grpc_wire::kPrefixBytes) {
      return fail(Code::kInvalidArgument, fmt::format("expected one message, got {} bytes", received_.size()));
    }
    if (received_[0] != 0) return fail(Code::kUnimplemented, "compressed messages are not supported");
    std::uint32_t length = 0;
    for (std::size_t i = 1; i < grpc_wire::kPrefixBytes; ++i)
      length = length << 8 | static_cast<unsigned char>(received_[i]);
    const std::string_view message = std::string_view(received_).substr(grpc_wire::kPrefixBytes);
    if (message.size() != length) {
      return fail(Code::kInvalidArgument,
                  fmt::format("the message's prefix says {} bytes, {} came", length, message.size()));
    }
    return message;
  }
  void answer_error(const Error& error) {
    failed_ = true;
    respond_grpc_error(exchange_, error);
  }

  ServerState& state_;
  net::Exchange& exchange_;
  SmallMethod method_;
  std::string received_;
  bool failed_ = false;
};

Result<std::string> server_live(ServerState&, std::string_view) { return grpc_wire::encode_bool(true); }

Result<std::string> server_ready(ServerState& state, std::string_view) {
  return grpc_wire::encode_bool(is_ready(state));
}

Result<std::string> server_metadata(ServerState& state, std::string_view) {
  return grpc_wire::encode_server_metadata(state.metadata);
}

Result<std::string> model_ready(ServerState& state, std::string_view message) {
  const auto ref = grpc_wire::parse_model_ref(message);
  if (!ref) return std::unexpected(ref.error());
  auto ready = is_model_ready(state, ref->name, ref->version);
  if (!ready) return std::unexpected(std::move(ready.error()));
  return grpc_wire::encode_bool(*ready);
}

Result<std::string> model_metadata(ServerState& state, std::string_view message) {
  const auto ref = grpc_wire::parse_model_ref(message);
  if (!ref) return std::unexpected(ref.error());
  auto metadata = describe_model(state, ref->name, ref->version);
  if (!metadata) return std::unexpected(std::move(metadata.error()));
  return grpc_wire::encode_model_metadata(*metadata);
}

Result<std::string> model_statistics(ServerState& state, std::string_view message) {
  const auto ref = grpc_wire::parse_model_ref(message);
  if (!ref) return std::unexpected(ref.error());
  auto statistics = collect_statistics(state, ref->name, ref->version);
  if (!statistics) return std::unexpected(std::move(statistics.error()));
  return grpc_wire::encode_model_statistics(*statistics);
}

Result<std::string> model_config(ServerState& state, std::string_view message) {
  const auto ref = grpc_wire::parse_model_ref(message);
  if (!ref) return std::unexpected(ref.error());
  const auto model = state.models.find(ref->name, ref->version);
  if (!model) return std::unexpected(model.error());
  return grpc_wire::encode_model_config((*model)->config());
}

Result<std::string> index_of_repository(ServerState& state, std::string_view message) {
  const auto only_ready = grpc_wire::parse_index_request(message);
  if (!only_ready) return std::unexpected(only_ready.error());
  return grpc_wire::encode_repository_index(repository_index(state, *only_ready));
}

// "" is the server as a whole; the inference service is known by its name; others are NOT_FOUND, as
// grpc.health.v1 says.
Result<std::string> health_check(ServerState& state, std::string_view message) {
  const auto service = grpc_wire::parse_health_request(message);
  if (!service) return std::unexpected(service.error());
  if (!service->empty() && *service != "inference.GRPCInferenceService") {
    return fail(Code::kNotFound, fmt::format("service '{}' is unknown", *service));
  }
  return grpc_wire::encode_health_response(is_ready(state) ? grpc_wire::HealthStatus::kServing
                                                           : grpc_wire::HealthStatus::kNotServing);
}

struct Route {
  std::string_view path;
  SmallMethod method;
};

constexpr std::string_view kInferPath = "/inference.GRPCInferenceService/ModelInfer";
constexpr std::array kSmallRoutes = {
    Route{"/inference.GRPCInferenceService/ServerLive", server_live},
    Route{"/inference.GRPCInferenceService/ServerReady", server_ready},
    Route{"/inference.GRPCInferenceService/ModelReady", model_ready},
    Route{"/inference.GRPCInferenceService/ServerMetadata", server_metadata},
    Route{"/inference.GRPCInferenceService/ModelMetadata", model_metadata},
    Route{"/inference.GRPCInferenceService/ModelStatistics", model_statistics},
    Route{"/inference.GRPCInferenceService/ModelConfig", model_config},
    Route{"/inference.GRPCInferenceService/RepositoryIndex", index_of_repository},
    Route{"/grpc.health.v1.Health/Check", health_check},
};

}  // namespace

std::unique_ptr<net::RequestHandler> open_grpc(ServerState& state, net::Exchange& exchange) {
  const net::RequestHead& head = exchange.head();
  const auto refuse = [&](const Error& error) {
    respond_grpc_error(exchange, error);
    return nullptr;
  };
  if (head.method != net::Method::kPost) {
    return refuse({Code::kUnimplemented, fmt::format("gRPC calls are POST, not {}", net::method_name(head.method))});
  }
  const auto deadline = client_deadline(head);
  if (!deadline) return refuse(deadline.error());
  const std::string_view path = head.path();
  if (path == kInferPath) return std::make_unique<GrpcInferHandler>(state, exchange, *deadline);
  const auto* route = std::ranges::find(kSmallRoutes, path, &Route::path);
  if (route == kSmallRoutes.end()) return refuse({Code::kUnimplemented, fmt::format("method '{}' is unknown", path)});
  return std::make_unique<SmallHandler>(state, exchange, route->method);
}

}  // namespace sluice::api
