#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "api/oip_service.h"
#include "front.h"
#include "net/client.h"
#include "net/grpc_client.h"
#include "raw_client.h"
#include "serving/model_registry.h"
#include "tensors.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/infer_reader.h"
#include "wire/oip/json.h"

namespace sluice::sim {
namespace {

constexpr std::string_view kRequestField = "x-sim-request";
constexpr std::string_view kInferPath = "/inference.GRPCInferenceService/ModelInfer";
constexpr std::size_t kRestConnections = 4;
// Small enough that windows which are not given back run out.
constexpr std::uint32_t kConnectionWindow = 65535;
// A client learns that its connections are broken within this and a round trip (one may just be made); what it
// sends meanwhile is lost, too.
constexpr Duration kLossNoticed = std::chrono::microseconds(20);

// Notes when the server is told that a request's client is gone.
class ObservingHandler final : public net::RequestHandler {
 public:
  ObservingHandler(Stage& stage, RequestRecord& record, std::unique_ptr<net::RequestHandler> inner)
      : stage_(stage), record_(record), inner_(std::move(inner)) {}

  MutableBytes body_target() override { return inner_->body_target(); }
  void on_placed(std::size_t bytes) override { inner_->on_placed(bytes); }
  void on_data(Bytes chunk) override { inner_->on_data(chunk); }
  void on_end() override { inner_->on_end(); }
  void on_writable() override { inner_->on_writable(); }
  void on_abort(const Error& reason) override {
    record_.aborted = stage_.world.now();
    inner_->on_abort(reason);
  }

 private:
  Stage& stage_;
  RequestRecord& record_;
  std::unique_ptr<net::RequestHandler> inner_;
};

// Notes when the server sees a request, and the deadline it was told.
class ObservingService final : public net::Service {
 public:
  ObservingService(Stage& stage, std::unique_ptr<net::Service> inner) : stage_(stage), inner_(std::move(inner)) {}

  std::unique_ptr<net::RequestHandler> open(net::Exchange& exchange) override {
    const net::Headers& headers = exchange.head().headers;
    std::uint64_t id = 0;
    if (const auto text = headers.get(kRequestField)) std::from_chars(text->data(), text->data() + text->size(), id);
    RequestRecord* record = stage_.ledger.find(id);
    if (record) {
      if (record->accepted != Time{}) {
        stage_.ledger.findings.add("network", fmt::format("request {} arrives twice", id));
      }
      record->accepted = stage_.world.now();
      if (const auto text = headers.get("grpc-timeout")) {
        const auto timeout = grpc_wire::parse_timeout(*text);
        if (timeout) record->queue_deadline = exchange.head().received + *timeout;
      }
    } else {
      stage_.ledger.findings.add("network", fmt::format("a request {} that nobody sent", id));
    }
    auto handler = inner_->open(exchange);
    if (!handler || !record) return handler;
    return std::make_unique<ObservingHandler>(stage_, *record, std::move(handler));
  }

 private:
  Stage& stage_;
  std::unique_ptr<net::Service> inner_;
};

struct SimServer {
  std::unique_ptr<net::Service> service;
  std::unique_ptr<net::HttpServer> http;
};

// The server's half: a replica's wiring (roles/serve) on simulated loops.
class SimReplica {
 public:
  explicit SimReplica(Stage& stage);
  const io::Endpoint& endpoint() const { return endpoint_; }
  void drain(Function<void()> drained);
  void check_closed();

 private:
  Stage& stage_;
  serving::EngineSet engines_;
  serving::ModelRegistry models_;
  api::ServerState state_;
  std::vector<SimServer> servers_;
  io::Endpoint endpoint_;
  std::size_t draining_ = 0;
  Function<void()> drained_;
};

SimReplica::SimReplica(Stage& stage)
    : stage_(stage),
      models_(engines_, stage.compute, *stage.server_loops.front(), stage.log),
      state_{.models = models_, .arena = stage.server_arena, .metadata = {},
             .max_body_bytes = stage.scenario.max_body_bytes, .log = stage.log} {
  models_.publish(stage.model);
  for (io::Loop* loop : stage.server_loops) {
    SimServer& server = servers_.emplace_back();
    server.service = std::make_unique<ObservingService>(stage, api::make_oip_service(state_));
    const net::ServerLimits limits{.max_body_bytes = stage.scenario.max_body_bytes,
                                   .stream_window_bytes = stage.scenario.server_window_bytes,
                                   .connection_window_bytes = kConnectionWindow};
    server.http = std::make_unique<net::HttpServer>(*loop, *server.service, limits, &stage.log);
    endpoint_ = server.http->listen(endpoint_, {.share_port = true}).value();
  }
}

void SimReplica::drain(Function<void()> drained) {
  drained_ = std::move(drained);
  state_.draining = true;
  draining_ = servers_.size();
  io::Loop& first = *stage_.server_loops.front();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    stage_.server_loops[i]->post([this, i, &first] {
      servers_[i].http->drain([this, &first] {
        first.post([this] {
          if (--draining_ == 0) models_.drain(std::move(drained_));
        });
      });
    });
  }
}

void SimReplica::check_closed() {
  for (const SimServer& server : servers_) {
    const net::ServerCounters counters = server.http->counters();
    if (counters.requests_open == 0 && counters.connections_open == 0) continue;
    stage_.ledger.findings.add("leaks", fmt::format("a server has {} requests and {} connections open",
                                                    counters.requests_open, counters.connections_open));
  }
}

// One machine of clients: a pool of HTTP/2 connections for gRPC, one of HTTP/1.1 for REST, and raw ones.
struct SimClient {
  io::Loop* loop = nullptr;
  std::unique_ptr<net::HttpClient> grpc, rest;
  std::map<std::uint64_t, std::unique_ptr<RawClient>> raw;
  Time lost_at = kNever;
};

class NetworkFront final : public RequestFront {
 public:
  explicit NetworkFront(Stage& stage);

  void send(RequestRecord& record) override;
  void cancel(RequestRecord& record) override;
  void drain(Function<void()> drained) override { replica_.drain(std::move(drained)); }
  void lose_client(std::uint32_t client) override;
  void close() override;

 private:
  class GrpcCall;

  SimClient& client_of(const RequestRecord& record) { return clients_[record.plan.client]; }
  void start(RequestRecord& record);
  void start_grpc(RequestRecord& record);
  void start_rest(RequestRecord& record);
  void start_raw(RequestRecord& record);
  net::ClientRequest rest_request(const RequestRecord& record);
  void answer_rest(RequestRecord& record, int status, std::optional<std::string_view> json_length,
                   std::string_view body);
  void answer_infer(RequestRecord& record, Result<InferResponse> response);
  void answer(RequestRecord& record, const Status& status) {
    stage_.ledger.answer(record.plan.id, status, stage_.world.now());
  }

  Stage& stage_;
  SimReplica replica_;
  std::vector<SimClient> clients_;
  std::map<std::uint64_t, net::CallId> calls_;
};

NetworkFront::NetworkFront(Stage& stage) : stage_(stage), replica_(stage) {
  for (io::Loop* loop : stage.client_loops) {
    SimClient& client = clients_.emplace_back();
    client.loop = loop;
    net::ClientOptions options{.endpoint = replica_.endpoint(),
                               .stream_window_bytes = stage.scenario.client_window_bytes,
                               .connection_window_bytes = kConnectionWindow};
    client.grpc = std::make_unique<net::HttpClient>(*loop, options);
    options.protocol = net::Protocol::kHttp1;
    options.max_connections = kRestConnections;
    client.rest = std::make_unique<net::HttpClient>(*loop, options);
  }
}

void NetworkFront::send(RequestRecord& record) {
  const SimClient& client = client_of(record);
  record.sent = stage_.world.now();
  const Duration noticed = kLossNoticed + 2 * stage_.scenario.network.max_latency;
  record.broken = client.lost_at != kNever && record.sent - client.lost_at < noticed;
  client.loop->post([this, &record] { start(record); });
}

void NetworkFront::start(RequestRecord& record) {
  switch (record.plan.protocol) {
    case Protocol::kGrpc: return start_grpc(record);
    case Protocol::kRestJson:
    case Protocol::kRestBinary: return start_rest(record);
    case Protocol::kSlowReader:
    case Protocol::kBreaker:
    case Protocol::kStaller: return start_raw(record);
  }
}

void NetworkFront::cancel(RequestRecord& record) {
  client_of(record).loop->post([this, &record] {
    const auto call = calls_.find(record.plan.id);
    if (record.answers > 0 || call == calls_.end()) return;
    record.given_up = true;
    record.given_up_at = stage_.world.now();
    SimClient& client = client_of(record);
    (record.plan.protocol == Protocol::kGrpc ? client.grpc : client.rest)->cancel(call->second);
  });
}

void NetworkFront::lose_client(std::uint32_t index) {
  clients_[index].lost_at = stage_.world.now();
  for (auto& [id, record] : stage_.ledger.records()) {
    if (record.plan.client == index && record.sent != Time{} && record.answers == 0) record.broken = true;
  }
  stage_.world.reset_all_streams_of(*clients_[index].loop);
}

void NetworkFront::close() {
  for (SimClient& client : clients_) {
    const std::size_t open = client.grpc->open_calls() + client.rest->open_calls();
    if (open > 0) stage_.ledger.findings.add("leaks", fmt::format("{} calls are open at a client", open));
    client.grpc.reset();
    client.rest.reset();
    client.raw.clear();
  }
  stage_.world.run_for(std::chrono::seconds(1));
  replica_.check_closed();
}

class NetworkFront::GrpcCall final : public net::ResponseHandler {
 public:
  GrpcCall(NetworkFront& front, RequestRecord& record)
      : front_(front), record_(record),
        reader_(grpc_wire::InferMessage::kResponse, front.stage_.client_arena, {}) {}

  void on_head(net::ClientResponseHead head) override { head_ = std::move(head); }
  MutableBytes body_target() override { return status_ ? reader_.tensor_tail() : MutableBytes{}; }
  void on_placed(std::size_t bytes) override { note(reader_.placed(bytes)); }
  void on_data(Bytes chunk) override {
    if (status_) note(reader_.feed(chunk));
  }
  void on_end(const net::Headers& trailers) override {
    const Status status = net::grpc_status(head_, trailers);
    if (!status) return front_.answer(record_, status);
    if (!status_) return front_.answer(record_, status_);
    if (!reader_.complete()) return front_.answer(record_, fail(Code::kDataLoss, "status 0 without a whole message"));
    front_.answer_infer(record_, reader_.take_response());
  }
  void on_error(const Error& error) override { front_.answer(record_, fail(error)); }

 private:
  void note(Status status) {
    if (!status) status_ = fail(Code::kDataLoss, status.error().message);
  }

  NetworkFront& front_;
  RequestRecord& record_;
  net::ClientResponseHead head_;
  grpc_wire::InferReader reader_;
  Status status_;
};

void NetworkFront::start_grpc(RequestRecord& record) {
  const Time now = stage_.world.now();
  const Time deadline = record.plan.timeout ? now + *record.plan.timeout : kNever;
  const InferRequest request = make_request(stage_.scenario.model, record.plan, stage_.client_arena);
  net::ClientRequest call = net::grpc_request(kInferPath, grpc_wire::encode_infer_request(request), now, deadline);
  call.headers.emplace_back(kRequestField, std::to_string(record.plan.id));
  calls_[record.plan.id] = client_of(record).grpc->send(std::move(call), std::make_unique<GrpcCall>(*this, record));
}

net::ClientRequest NetworkFront::rest_request(const RequestRecord& record) {
  const bool binary = record.plan.protocol != Protocol::kRestJson;
  InferRequest infer = make_request(stage_.scenario.model, record.plan, stage_.client_arena);
  infer.binary_output_default = binary;
  oip::EncodedJson encoded = oip::encode_infer_request(infer, binary);
  net::ClientRequest request;
  request.method = net::Method::kPost;
  request.target = fmt::format("/v2/models/{}/infer", infer.model_name);
  request.headers.emplace_back(kRequestField, std::to_string(record.plan.id));
  if (encoded.json_length) {
    request.headers.emplace_back("inference-header-content-length", std::to_string(*encoded.json_length));
  }
  request.body = std::move(encoded.payload);
  return request;
}

void NetworkFront::start_rest(RequestRecord& record) {
  net::ClientRequest request = rest_request(record);
  if (record.plan.timeout) request.deadline = stage_.world.now() + *record.plan.timeout;
  calls_[record.plan.id] = client_of(record).rest->send(
      std::move(request), [this, &record](Result<net::ClientResponse> response) {
        if (!response) return answer(record, fail(response.error()));
        answer_rest(record, response->status, response->headers.get("inference-header-content-length"), response->body);
      });
}

void NetworkFront::start_raw(RequestRecord& record) {
  const net::ClientRequest request = rest_request(record);
  std::string bytes = fmt::format("POST {} HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n", request.target,
                                  payload_size(request.body));
  for (const auto& [name, value] : request.headers) bytes += fmt::format("{}: {}\r\n", name, value);
  bytes += "\r\n";
  for (const Slice& slice : request.body) bytes += as_text(slice.view());
  RawClient::Options options{.endpoint = replica_.endpoint(),
                             .request = std::move(bytes),
                             .leaves = record.plan.protocol == Protocol::kBreaker,
                             .stalls = record.plan.protocol == Protocol::kStaller,
                             .seed = stage_.scenario.seed ^ record.plan.id};
  SimClient& client = client_of(record);
  client.raw[record.plan.id] = std::make_unique<RawClient>(
      *client.loop, std::move(options), [this, &record](Result<RawResponse> response) {
        if (!response) {
          record.given_up = response.error().code == Code::kCancelled;
          record.given_up_at = stage_.world.now();
          return answer(record, fail(response.error()));
        }
        const auto field = response->head.find("inference-header-content-length: ");
        std::optional<std::string> length;
        if (field != std::string::npos) {
          const auto begin = response->head.find(' ', field) + 1;
          length = response->head.substr(begin, response->head.find('\r', begin) - begin);
        }
        int status = 0;
        std::from_chars(response->head.data() + 9, response->head.data() + 12, status);
        answer_rest(record, status, length, response->body);
      });
}

Code code_of_http(int status) {
  switch (status) {
    case 400: return Code::kInvalidArgument;
    case 404: return Code::kNotFound;
    case 408: return Code::kDeadlineExceeded;
    case 413:
    case 429: return Code::kResourceExhausted;
    case 499: return Code::kCancelled;
    case 500: return Code::kInternal;
    case 503: return Code::kUnavailable;
    case 504: return Code::kDeadlineExceeded;
    default: return Code::kUnknown;
  }
}

void NetworkFront::answer_rest(RequestRecord& record, int status, std::optional<std::string_view> json_length,
                               std::string_view body) {
  if (status != 200) return answer(record, fail(code_of_http(status), fmt::format("HTTP {}: {}", status, body)));
  std::size_t json_bytes = body.size();
  if (json_length) std::from_chars(json_length->data(), json_length->data() + json_length->size(), json_bytes);
  // The parser reads past the JSON's end, into room that is there.
  auto room = stage_.client_arena.allocate(body.size() + 64).value();
  std::ranges::copy(as_bytes(body), room.data());
  oip::JsonBody parts{.json = as_text(Bytes(room.bytes()).first(json_bytes))};
  auto binary = stage_.client_arena.allocate(body.size() - json_bytes).value();
  std::ranges::copy(as_bytes(body.substr(json_bytes)), binary.data());
  parts.binary = Tensor{DataType::kUint8, {static_cast<std::int64_t>(binary.size())}, binary.bytes(), binary};
  answer_infer(record, oip::parse_infer_response(parts, stage_.client_arena, {}));
}

void NetworkFront::answer_infer(RequestRecord& record, Result<InferResponse> response) {
  if (!response) return answer(record, fail(Code::kDataLoss, response.error().message));
  if (const auto wrong = wrong_answer(stage_.scenario.model, record.plan, *response)) {
    stage_.ledger.findings.add("right rows", fmt::format("request {}: {}", record.plan.id, *wrong));
  }
  answer(record, {});
}

}  // namespace

std::unique_ptr<RequestFront> make_network_front(Stage& stage) { return std::make_unique<NetworkFront>(stage); }

}  // namespace sluice::sim
