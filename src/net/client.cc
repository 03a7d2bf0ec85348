#include "net/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/client_call.h"
#include "net/h1/client_session.h"
#include "net/h2/client_session.h"

namespace sluice::net {
namespace {

// Gathers a response and hands it over whole.
class Collector final : public ResponseHandler {
 public:
  explicit Collector(Function<void(Result<ClientResponse>)> done) : done_(std::move(done)) {}

  void on_head(ClientResponseHead head) override {
    response_.status = head.status;
    response_.headers = std::move(head.headers);
  }
  void on_data(Bytes chunk) override { response_.body += as_text(chunk); }
  void on_end(const Headers& trailers) override {
    response_.trailers = trailers;
    done_(std::move(response_));
  }
  void on_error(const Error& error) override { done_(fail(error)); }

 private:
  Function<void(Result<ClientResponse>)> done_;
  ClientResponse response_;
};

}  // namespace

class HttpClient::State final : public ConnectionOwner, public ClientHost {
 public:
  State(io::Loop& loop, const ClientOptions& options)
      : ClientHost(options), context_(std::make_shared<ConnectionContext>(loop)) {}

  ~State() {
    closing_ = true;
    const Error reason{Code::kCancelled, "the client was closed"};
    auto calls = std::exchange(calls_, {});
    waiting_.clear();
    connections_.clear();
    for (auto& [id, call] : calls) call->handler->on_error(reason);
    for (auto& [call, error] : std::exchange(failed_, {})) call->handler->on_error(error);
  }

  CallId send(ClientRequest request, std::unique_ptr<ResponseHandler> handler) {
    auto made = std::make_unique<ClientCall>();
    ClientCall& call = *made;
    call.id = ++last_id_;
    call.request = std::move(request);
    call.handler = std::move(handler);
    const Time deadline = call.request.deadline;
    calls_.emplace(call.id, std::move(made));
    if (waiting_.size() >= options.max_waiting) {
      fail_later(call, {Code::kResourceExhausted, fmt::format("{} requests wait for {}, which is the limit",
                                                              waiting_.size(), io::to_string(options.endpoint))});
      return last_id_;
    }
    if (deadline != kNever) {
      call.deadline.emplace(context_->loop().timers(), [this, &call] { expire(call); });
      call.deadline->arm(deadline);
    }
    call.waiting = true;
    call.waiting_place = waiting_.insert(waiting_.end(), &call);
    dispatch();
    return call.id;
  }

  void cancel(CallId id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    fail_later(*found->second, {Code::kCancelled, "the call was cancelled"});
  }

  std::size_t open_calls() const { return calls_.size(); }
  std::size_t open_connections() const { return connections_.size(); }

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    ClientSession* session;
  };

  // ClientHost
  void call_ended(ClientCall& call, const Headers& trailers) override {
    const std::unique_ptr<ClientCall> over = take(call);
    over->handler->on_end(trailers);
  }
  void call_failed(ClientCall& call, const Error& error) override {
    const std::unique_ptr<ClientCall> over = take(call);
    over->handler->on_error(error);
  }
  void room_changed() override { dispatch(); }

  // ConnectionOwner
  void connection_closed(Connection& connection) override {
    const auto found = std::ranges::find(connections_, &connection, [](const Entry& e) { return e.connection.get(); });
    context_->bury(std::move(found->connection));
    connections_.erase(found);
    dispatch();
  }

  std::unique_ptr<ClientCall> take(ClientCall& call) {
    const auto found = calls_.find(call.id);
    std::unique_ptr<ClientCall> taken = std::move(found->second);
    calls_.erase(found);
    taken->deadline.reset();
    return taken;
  }

  // Takes the call from where it is; its handler is told when nothing of it can be on the stack.
  void fail_later(ClientCall& call, Error error) {
    call.cancelled = true;
    detach(call);
    failed_.emplace_back(take(call), std::move(error));
    if (failed_.size() == 1) context_->defer([this] { tell_failed(); });
  }

  void tell_failed() {
    auto failed = std::exchange(failed_, {});
    for (auto& [call, error] : failed) call->handler->on_error(error);
    dispatch();
  }

  void detach(ClientCall& call) {
    if (call.session) {
      std::exchange(call.session, nullptr)->cancel(call);
    } else if (std::exchange(call.waiting, false)) {
      waiting_.erase(call.waiting_place);
    }
  }

  void expire(ClientCall& call) {
    fail_later(call, {Code::kDeadlineExceeded, fmt::format("no response from {} before the request's deadline",
                                                           io::to_string(options.endpoint))});
  }

  // The least loaded connection with room.
  ClientSession* pick() {
    ClientSession* best = nullptr;
    for (const Entry& entry : connections_) {
      if (!entry.session->has_room()) continue;
      if (!best || entry.session->open_calls() < best->open_calls()) best = entry.session;
    }
    return best;
  }

  // Gives waiting calls to connections, and opens more of them while all are busy.
  void dispatch() {
    while (!waiting_.empty() && !closing_) {
      ClientSession* session = pick();
      if (!session || session->open_calls() > 0) connect_more();
      if (!session) return;
      ClientCall& call = *waiting_.front();
      waiting_.pop_front();
      call.waiting = false;
      session->begin(call);
    }
  }

  void connect_more() {
    // One connection takes many calls of HTTP/2, so one at a time is made; one of HTTP/1.1 takes one.
    const std::size_t wanted = options.protocol == Protocol::kHttp2 ? 1 : waiting_.size();
    while (connecting_ < wanted && connections_.size() + connecting_ < options.max_connections) connect();
  }

  void connect() {
    ++connecting_;
    const Time deadline = saturating_add(context_->loop().now(), options.connect_timeout);
    context_->loop().connect(options.endpoint, deadline,
                             [this, context = std::weak_ptr(context_)](Result<std::unique_ptr<io::Stream>> stream) {
                               if (!context.expired()) connected(std::move(stream));
                             });
  }

  void connected(Result<std::unique_ptr<io::Stream>> stream) {
    --connecting_;
    if (!stream) return connect_failed(stream.error());
    ConnectionOwner& owner = *this;
    auto made = std::make_unique<Connection>(*context_, std::move(*stream), owner, Duration::max());
    if (options.protocol == Protocol::kHttp2) {
      start<h2::ClientSessionH2>(std::move(made));
    } else {
      start<h1::ClientSessionH1>(std::move(made));
    }
    dispatch();
  }

  template <class SessionType>
  void start(std::unique_ptr<Connection> made) {
    Connection& connection = *made;
    auto session = std::make_unique<SessionType>(connection, *this);
    connections_.push_back({std::move(made), session.get()});
    connection.start(std::move(session));
  }

  // Those who wait may still be served by another connection; if there is none, they fail with the reason.
  void connect_failed(const Error& error) {
    if (!connections_.empty() || connecting_ > 0) return;
    while (!waiting_.empty()) fail_later(*waiting_.front(), error);
  }

  std::shared_ptr<ConnectionContext> context_;
  std::vector<Entry> connections_;
  std::size_t connecting_ = 0;
  std::unordered_map<CallId, std::unique_ptr<ClientCall>> calls_;
  std::list<ClientCall*> waiting_;
  std::vector<std::pair<std::unique_ptr<ClientCall>, Error>> failed_;  // to be told at the end of the turn
  CallId last_id_ = 0;
  bool closing_ = false;
};

HttpClient::HttpClient(io::Loop& loop, const ClientOptions& options) : state_(std::make_unique<State>(loop, options)) {}

HttpClient::~HttpClient() = default;

CallId HttpClient::send(ClientRequest request, std::unique_ptr<ResponseHandler> handler) {
  return state_->send(std::move(request), std::move(handler));
}

CallId HttpClient::send(ClientRequest request, Function<void(Result<ClientResponse>)> done) {
  return state_->send(std::move(request), std::make_unique<Collector>(std::move(done)));
}

void HttpClient::cancel(CallId id) { state_->cancel(id); }

std::size_t HttpClient::open_calls() const { return state_->open_calls(); }

std::size_t HttpClient::open_connections() const { return state_->open_connections(); }

}  // namespace sluice::net
