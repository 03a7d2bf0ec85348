#include "io/sim/sim_network.h"

#include <fmt/format.h>

#include <vector>

namespace sluice::io {
namespace {

class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<SimConnection> connection, SimConnection::Side side)
      : connection_(std::move(connection)), side_(side) {}
  ~SimStream() override { connection_->close(side_); }

  void set_events(StreamEvents* events) override { connection_->set_events(side_, events); }
  IoResult read(MutableBytes into) override { return connection_->read(side_, into); }
  IoResult write(std::span<const Bytes> parts) override { return connection_->write(side_, parts); }
  void want_read() override { connection_->want_read(side_); }
  void want_write() override { connection_->want_write(side_); }
  void shutdown_write() override { connection_->shutdown_write(side_); }
  void close() override { connection_->close(side_); }
  Error error() const override { return connection_->error(side_); }
  const std::string& peer() const override { return connection_->peer(side_); }

 private:
  std::shared_ptr<SimConnection> connection_;
  SimConnection::Side side_;
};

class SimListener final : public Listener {
 public:
  SimListener(std::shared_ptr<SimListening> state, Function<void()> forget)
      : state_(std::move(state)), forget_(std::move(forget)) {}
  ~SimListener() override {
    state_->open = false;
    forget_();
  }
  Endpoint local() const override { return state_->at; }

 private:
  std::shared_ptr<SimListening> state_;
  Function<void()> forget_;
};

constexpr std::uint16_t kFirstClientPort = 40000;
constexpr std::uint16_t kClientPorts = 20000;

}  // namespace

struct SimNetwork::Attempt {
  SimLoop& loop;
  Loop::ConnectHandler done;  // empty once called
};

Duration SimNetwork::latency() {
  const SimNetworkOptions& options = core_.options;
  return Duration(core_.random.between(options.min_latency.count(),
                                       std::max(options.min_latency, options.max_latency).count()));
}

std::uint16_t SimNetwork::free_port(const std::string& host) {
  while (listeners_.contains({host, next_port_})) ++next_port_;
  return next_port_++;
}

Result<std::unique_ptr<Listener>> SimNetwork::listen(SimLoop& loop, const Endpoint& at, const ListenOptions& options,
                                                     Loop::AcceptHandler on_accept) {
  if (at.host.empty()) return fail(Code::kInvalidArgument, "an address to listen on is empty, expected an IP address");
  Endpoint local{at.host, at.port == 0 ? free_port(at.host) : at.port};
  const auto key = std::pair(local.host, local.port);
  const auto [first, last] = listeners_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    if (!options.share_port || !it->second->share_port) {
      return fail(Code::kUnavailable, fmt::format("{}:{} is already in use", local.host, local.port));
    }
  }
  auto state = std::make_shared<SimListening>(
      SimListening{loop, std::move(local), options.share_port, std::move(on_accept)});
  const auto entry = listeners_.emplace(key, state);
  return std::make_unique<SimListener>(std::move(state), [this, entry] { listeners_.erase(entry); });
}

std::shared_ptr<SimListening> SimNetwork::find_listener(const Endpoint& to) {
  const auto [first, last] = listeners_.equal_range({to.host, to.port});
  if (first == last) return nullptr;
  const auto count = static_cast<std::uint64_t>(std::distance(first, last));
  return std::next(first, static_cast<std::ptrdiff_t>(core_.random.below(count)))->second;
}

void SimNetwork::connect(SimLoop& loop, const Endpoint& to, Time deadline, Loop::ConnectHandler done) {
  const auto attempt = std::make_shared<Attempt>(Attempt{loop, std::move(done)});
  core_.schedule_after(latency(), SimEventKind::kConnect, [this, attempt, to] { arrive(attempt, to); });
  if (deadline == kNever) return;
  core_.schedule(deadline, SimEventKind::kConnect, [attempt, to] {
    finish(attempt, fail(Code::kDeadlineExceeded, fmt::format("no connection to {}:{} in time", to.host, to.port)));
  });
}

// A request to connect has come to where a listener should be.
void SimNetwork::arrive(const std::shared_ptr<Attempt>& attempt, const Endpoint& to) {
  const auto listener = find_listener(to);
  if (!listener) {
    core_.schedule_after(latency(), SimEventKind::kConnect, [attempt, to] {
      finish(attempt, fail(Code::kUnavailable, fmt::format("{}:{}: connection refused", to.host, to.port)));
    });
    return;
  }
  const std::uint64_t id = next_connection_++;
  auto connection = std::make_shared<SimConnection>(
      core_, id, std::array{&attempt->loop, &listener->loop},
      std::array{fmt::format("{}:{}", to.host, to.port),
                 fmt::format("127.0.0.1:{}", kFirstClientPort + id % kClientPorts)});
  auto near = std::make_unique<SimStream>(connection, 0);
  auto far = std::make_unique<SimStream>(connection, 1);
  core_.schedule_after(latency(), SimEventKind::kConnect, [attempt, near = std::move(near)]() mutable {
    finish(attempt, std::move(near));
  });
  listener->loop.turn([&] { listener->on_accept(std::move(far)); });
}

void SimNetwork::finish(const std::shared_ptr<Attempt>& attempt, Result<std::unique_ptr<Stream>> result) {
  if (!attempt->done) return;
  attempt->loop.turn([&] { std::exchange(attempt->done, nullptr)(std::move(result)); });
}

void SimNetwork::reset_all_streams_of(const SimLoop& loop) {
  for (const auto& [id, connection] : connections_) {
    if (connection->loop(0) == &loop || connection->loop(1) == &loop) connection->reset("connection reset: host gone");
  }
}

std::size_t SimNetwork::open_streams() const {
  std::size_t count = 0;
  for (const auto& [id, connection] : connections_) count += connection->open(0) + connection->open(1);
  return count;
}

}  // namespace sluice::io
