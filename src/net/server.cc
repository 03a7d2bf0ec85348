#include "net/server.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "net/h1/server_session.h"
#include "net/h2/server_session.h"
#include "net/preface.h"
#include "net/server_exchange.h"
#include "net/transport/connection.h"

namespace sluice::net {
namespace {

class DetectSession;
using AnySession = std::variant<DetectSession*, h1::ServerSession*, h2::ServerSession*>;

// Told when a connection's protocol is known.
class ProtocolListener {
 public:
  virtual void protocol_known(Connection& connection, AnySession session) = 0;

 protected:
  ~ProtocolListener() = default;
};

// The first bytes of a connection, until they say which protocol it is.
class DetectSession final : public Session {
 public:
  DetectSession(Connection& connection, ServerShared& shared, ProtocolListener& listener)
      : connection_(connection), shared_(shared), listener_(listener), since_(connection.now()) {}

  // As little as a head takes: what lies behind it may belong into a tensor.
  MutableBytes read_space(MutableBytes shared) override { return shared.first(kFirstReadBytes); }

  bool received(Bytes bytes) override {
    if (!first_byte_) since_ = connection_.now();
    first_byte_ = true;
    const std::optional<Protocol> protocol = detector_.feed(bytes);
    if (!protocol) return true;
    if (*protocol == Protocol::kHttp1) return hand_over<h1::ServerSession>(bytes);
    return hand_over<h2::ServerSession>(bytes);
  }

  void end_of_input() override { done_ = true; }
  void advance() override {}
  void produce(OutputQueue&) override {}
  bool notify_writable() override { return false; }
  Time deadline() const override {
    const ServerLimits& limits = shared_.limits;
    return std::min(drain_by_, saturating_add(since_, first_byte_ ? limits.header_timeout : limits.idle_timeout));
  }
  void expire(Time) override {
    if (first_byte_) ++connection_.context().timeouts;
    done_ = true;
  }
  void broken(const Error&) override { done_ = true; }
  bool done() const override { return done_; }

  // A request may be on its way.
  void drain() {
    drain_by_ = saturating_add(connection_.now(), kDrainGrace);
    connection_.schedule();
  }

 private:
  static constexpr std::size_t kFirstReadBytes = 16 * 1024;
  static constexpr Duration kDrainGrace = std::chrono::seconds(1);

  // The connection keeps this session alive until the entry is over.
  template <class Next>
  bool hand_over(Bytes bytes) {
    auto next = std::make_unique<Next>(connection_, shared_);
    Next& session = *next;
    connection_.replace_session(std::move(next));
    listener_.protocol_known(connection_, &session);
    const std::string_view before = detector_.undecided();
    if (!before.empty()) session.received(as_bytes(before));
    return session.received(bytes);
  }

  Connection& connection_;
  ServerShared& shared_;
  ProtocolListener& listener_;
  PrefaceDetector detector_;
  Time since_;
  Time drain_by_ = kNever;
  bool first_byte_ = false;
  bool done_ = false;
};

}  // namespace

class HttpServer::State final : private ConnectionOwner, private ProtocolListener {
 public:
  State(io::Loop& loop, Service& service, const ServerLimits& limits, const Log* log)
      : context_(std::make_shared<ConnectionContext>(loop)),
        shared_{.service = service, .limits = limits, .log = log, .counters = {}} {}

  ~State() {
    listeners_.clear();
    for (Entry* entry : by_arrival()) entry->connection->shut_down({Code::kUnavailable, "the server has stopped"});
  }

  Result<io::Endpoint> listen(const io::Endpoint& at, const io::ListenOptions& options) {
    auto listener = context_->loop().listen(at, options, [this](std::unique_ptr<io::Stream> stream) {
      accept(std::move(stream));
    });
    if (!listener) return fail(std::move(listener.error()));
    listeners_.push_back(std::move(*listener));
    return listeners_.back()->local();
  }

  void drain(Function<void()> drained) {
    drained_ = std::move(drained);
    shared_.draining = true;
    listeners_.clear();
    for (Entry* entry : by_arrival()) std::visit([](auto* session) { session->drain(); }, entry->session);
    check_drained();
  }

  ServerCounters counters() const {
    ServerCounters counters = shared_.counters;
    counters.connections_open = connections_.size();
    counters.bytes_read = context_->bytes_read;
    counters.bytes_written = context_->bytes_written;
    counters.timeouts = context_->timeouts;
    return counters;
  }

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    AnySession session;
    std::uint64_t number;  // by arrival
  };

  // Never in the order of their addresses: a simulated history must replay.
  std::vector<Entry*> by_arrival() {
    std::vector<Entry*> entries;
    for (auto& [connection, entry] : connections_) entries.push_back(&entry);
    std::ranges::sort(entries, {}, &Entry::number);
    return entries;
  }

  void accept(std::unique_ptr<io::Stream> stream) {
    if (shared_.draining || connections_.size() >= shared_.limits.max_connections) {
      ++shared_.counters.connections_refused;
      stream->close();
      return;
    }
    ++shared_.counters.connections_accepted;
    ConnectionOwner& owner = *this;
    ProtocolListener& listener = *this;
    auto made = std::make_unique<Connection>(*context_, std::move(stream), owner, shared_.limits.write_stall_timeout);
    Connection& connection = *made;
    auto session = std::make_unique<DetectSession>(connection, shared_, listener);
    connections_.emplace(&connection, Entry{std::move(made), session.get(), shared_.counters.connections_accepted});
    connection.start(std::move(session));
  }

  void protocol_known(Connection& connection, AnySession session) override {
    connections_.at(&connection).session = session;
  }

  void connection_closed(Connection& connection) override {
    auto node = connections_.extract(&connection);
    context_->bury(std::move(node.mapped().connection));
    check_drained();
  }

  void check_drained() {
    if (!shared_.draining || !connections_.empty() || !drained_) return;
    context_->defer(std::exchange(drained_, nullptr));
  }

  std::shared_ptr<ConnectionContext> context_;
  ServerShared shared_;
  std::vector<std::unique_ptr<io::Listener>> listeners_;
  std::unordered_map<Connection*, Entry> connections_;
  Function<void()> drained_;
};

HttpServer::HttpServer(io::Loop& loop, Service& service, const ServerLimits& limits, const Log* log)
    : state_(std::make_unique<State>(loop, service, limits, log)) {}

HttpServer::~HttpServer() = default;

Result<io::Endpoint> HttpServer::listen(const io::Endpoint& at, const io::ListenOptions& options) {
  return state_->listen(at, options);
}

void HttpServer::drain(Function<void()> drained) { state_->drain(std::move(drained)); }

ServerCounters HttpServer::counters() const { return state_->counters(); }

}  // namespace sluice::net
