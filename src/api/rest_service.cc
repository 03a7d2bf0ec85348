#include "api/rest_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/answers.h"
#include "api/errors.h"
#include "api/rest_infer.h"
#include "wire/config/pbtxt.h"
#include "wire/oip/json.h"
#include "wire/oip/repository.h"
#include "wire/oip/statistics.h"

namespace sluice::api {
namespace {

constexpr std::size_t kMaxIndexRequestBytes = 64 * 1024;

// POST /v2/repository/index: its body is small, and may be empty.
class IndexHandler final : public net::RequestHandler {
 public:
  IndexHandler(ServerState& state, net::Exchange& exchange) : state_(state), exchange_(exchange) {}
  void on_data(Bytes chunk) override {
    if (failed_) return;
    if (chunk.size() <= kMaxIndexRequestBytes - body_.size()) {
      body_ += as_text(chunk);
      return;
    }
    failed_ = true;
    const std::string text = fmt::format("the body is larger than the limit of {} bytes", kMaxIndexRequestBytes);
    respond_json(exchange_, 413, oip::encode_error(text));
  }
  void on_end() override {
    if (failed_) return;
    const auto only_ready = oip::parse_index_request(body_);
    if (!only_ready) return respond_error(exchange_, only_ready.error());
    respond_json(exchange_, 200, oip::encode_repository_index(repository_index(state_, *only_ready)));
  }
  void on_abort(const Error&) override {}

 private:
  ServerState& state_;
  net::Exchange& exchange_;
  std::string body_;
  bool failed_ = false;
};

void answer_ready(net::Exchange& exchange, bool ready, std::string_view what) {
  if (ready) return respond_empty(exchange, 200);
  respond_error(exchange, {Code::kUnavailable, fmt::format("{} is not ready", what)});
}

void answer_statistics(ServerState& state, net::Exchange& exchange, std::string_view model, std::string_view version) {
  const auto statistics = collect_statistics(state, model, version);
  if (!statistics) return respond_error(exchange, statistics.error());
  respond_json(exchange, 200, oip::encode_statistics(*statistics));
}

void answer_metadata(ServerState& state, net::Exchange& exchange, const ModelPath& path) {
  const auto metadata = describe_model(state, path.model, path.version);
  if (!metadata) return respond_error(exchange, metadata.error());
  respond_json(exchange, 200, oip::encode_model_metadata(*metadata));
}

void answer_config(ServerState& state, net::Exchange& exchange, const ModelPath& path) {
  const auto model = state.models.find(path.model, path.version);
  if (!model) return respond_error(exchange, model.error());
  respond_json(exchange, 200, format_model_config_json((*model)->config()));
}

void answer_model_ready(ServerState& state, net::Exchange& exchange, const ModelPath& path) {
  const auto ready = is_model_ready(state, path.model, path.version);
  if (!ready) return respond_error(exchange, ready.error());
  answer_ready(exchange, *ready, fmt::format("model '{}'", path.model));
}

// What is wrong with the names in a path, if anything.
Status check_names(const ModelPath& path) {
  if (!is_model_name(path.model)) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("'{}' cannot be a model's name: letters, digits, '.', '_' and '-', at most 256", path.model));
  }
  if (!path.version.empty() && !is_model_version(path.version)) {
    return fail(Code::kInvalidArgument, fmt::format("version '{}' is not a number", path.version));
  }
  return {};
}

std::unique_ptr<net::RequestHandler> open_infer(ServerState& state, net::Exchange& exchange, const ModelPath& path) {
  auto handler =
      std::make_unique<RestInferHandler>(state, exchange, std::string(path.model), std::string(path.version));
  if (!handler->begin()) return nullptr;
  return handler;
}

std::unique_ptr<net::RequestHandler> open_model(ServerState& state, net::Exchange& exchange, const ModelPath& path,
                                                bool is_get) {
  if (const auto status = check_names(path); !status) {
    respond_error(exchange, status.error());
    return nullptr;
  }
  if (path.verb == "infer") {
    if (exchange.head().method == net::Method::kPost) return open_infer(state, exchange, path);
    respond_method_not_allowed(exchange, "POST");
    return nullptr;
  }
  using Answer = void (*)(ServerState&, net::Exchange&, const ModelPath&);
  Answer answer = nullptr;
  if (path.verb.empty()) answer = answer_metadata;
  if (path.verb == "ready") answer = answer_model_ready;
  if (path.verb == "config") answer = answer_config;
  if (path.verb == "stats") {
    answer = [](ServerState& s, net::Exchange& e, const ModelPath& p) { answer_statistics(s, e, p.model, p.version); };
  }
  if (!answer) {
    const bool known = path.verb == "generate" || path.verb == "generate_stream";
    respond_error(exchange, known ? Error{Code::kUnimplemented, fmt::format("'{}' is not supported", path.verb)}
                                  : Error{Code::kNotFound, fmt::format("'{}' is no route of a model", path.verb)});
  } else if (!is_get) {
    respond_method_not_allowed(exchange, "GET");
  } else {
    answer(state, exchange, path);
  }
  return nullptr;
}

// True when the path is one of the server's own and has been answered.
bool answer_server_route(ServerState& state, net::Exchange& exchange, std::string_view path, bool is_get) {
  const bool known = path == "/v2" || path == "/v2/" || path == "/v2/health/live" || path == "/v2/health/ready" ||
                     path == "/v2/models/stats";
  if (!known) return false;
  if (!is_get) {
    respond_method_not_allowed(exchange, "GET");
  } else if (path == "/v2/health/live") {
    respond_empty(exchange, 200);
  } else if (path == "/v2/health/ready") {
    answer_ready(exchange, is_ready(state), "the server");
  } else if (path == "/v2/models/stats") {
    answer_statistics(state, exchange, "", "");
  } else {
    respond_json(exchange, 200, oip::encode_server_metadata(state.metadata));
  }
  return true;
}

// Triton's routes that are not served: a client learns that, rather than that it has mistyped.
bool is_unsupported_route(std::string_view path) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"/v2/repository/models/", "/v2/systemsharedmemory",
                                                         "/v2/cudasharedmemory", "/v2/trace/setting", "/v2/logging"};
  const auto starts_path = [path](std::string_view prefix) { return path.starts_with(prefix); };
  return std::ranges::any_of(kPrefixes, starts_path) ||
         (path.starts_with("/v2/models/") && path.ends_with("/trace/setting"));
}

}  // namespace

std::optional<ModelPath> parse_model_path(std::string_view path) {
  constexpr std::string_view kPrefix = "/v2/models/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  const auto take = [&path] {
    const auto slash = path.find('/');
    const auto word = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    return word;
  };
  ModelPath parsed;
  parsed.model = take();
  if (parsed.model.empty()) return std::nullopt;
  if (path.starts_with("versions/")) {
    take();
    parsed.version = take();
    if (parsed.version.empty()) return std::nullopt;
  }
  parsed.verb = take();
  if (!path.empty()) return std::nullopt;
  return parsed;
}

std::unique_ptr<net::RequestHandler> open_rest(ServerState& state, net::Exchange& exchange) {
  const net::RequestHead& head = exchange.head();
  const std::string_view path = head.path();
  const bool is_get = head.method == net::Method::kGet || head.method == net::Method::kHead;
  if (answer_server_route(state, exchange, path, is_get)) return nullptr;
  if (path == "/v2/repository/index") {
    if (head.method == net::Method::kPost) return std::make_unique<IndexHandler>(state, exchange);
    respond_method_not_allowed(exchange, "POST");
    return nullptr;
  }
  if (const auto model_path = parse_model_path(path)) return open_model(state, exchange, *model_path, is_get);
  const bool known = is_unsupported_route(path);
  respond_error(exchange, known ? Error{Code::kUnimplemented, fmt::format("'{}' is not supported", path)}
                                : Error{Code::kNotFound, fmt::format("no route for '{}'", path)});
  return nullptr;
}

}  // namespace sluice::api
