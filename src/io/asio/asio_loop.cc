#include "io/asio/asio_loop.h"

#include <utility>

#include <fmt/format.h>

#include "io/asio/asio_connect.h"
#include "io/asio/asio_listener.h"

namespace sluice::io {
namespace {

thread_local const AsioLoop* current_loop = nullptr;

// Listening resolves no names: an address, or the one name that everybody has.
Result<asio::ip::tcp::endpoint> to_address(const Endpoint& at) {
  error_code error;
  const auto address = asio::ip::make_address(at.host == "localhost" ? "127.0.0.1" : at.host, error);
  if (error) {
    return fail(Code::kInvalidArgument,
                fmt::format("cannot listen on '{}': expected an IP address or localhost", at.host));
  }
  return asio::ip::tcp::endpoint(address, at.port);
}

}  // namespace

AsioLoop::AsioLoop(std::shared_ptr<SharedPorts> ports)
    : ports_(std::move(ports)), context_(1), work_(context_.get_executor()), kernel_timer_(context_) {}

AsioLoop::~AsioLoop() {
  std::vector<Function<void()>> unrun;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    unrun.swap(posted_);
  }
  deferred_.clear();
}

void AsioLoop::run() {
  current_loop = this;
  end_turn();  // timers may have been armed before
  context_.run();
  current_loop = nullptr;
}

void AsioLoop::stop() { context_.stop(); }

Time AsioLoop::now() const { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

std::int64_t AsioLoop::wall_ms() const {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool AsioLoop::on_loop_thread() const { return current_loop == this; }

void AsioLoop::post(Function<void()> task) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;  // by a task's destructor
    is_first = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (is_first) asio::post(context_, [this] { run_posted(); });
}

void AsioLoop::run_posted() {
  const Turn turn(*this);
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (auto& task : running_) {
    task();
    task = nullptr;  // what it captured goes before the next task runs
  }
  running_.clear();
}

void AsioLoop::defer(Function<void()> task) { deferred_.push_back(std::move(task)); }

void AsioLoop::run_deferred() {
  while (!deferred_.empty()) {
    deferred_running_.swap(deferred_);
    for (auto& task : deferred_running_) {
      task();
      task = nullptr;
    }
    deferred_running_.clear();
  }
}

void AsioLoop::end_turn() {
  run_deferred();
  // A later earliest is left to the kernel timer that is armed already: it fires once in vain, which is
  // cheaper than a system call whenever a deadline is met.
  if (const Time earliest = timers_.earliest(); earliest < kernel_timer_at_) arm_kernel_timer(earliest);
}

void AsioLoop::arm_kernel_timer(Time at) {
  kernel_timer_at_ = at;
  kernel_timer_.expires_at(std::chrono::steady_clock::time_point(at.time_since_epoch()));
  kernel_timer_.async_wait([this](const error_code& error) {
    if (error) return;  // replaced by an earlier one
    const Turn turn(*this);
    kernel_timer_at_ = kNever;
    timers_.expire(now());
  });
}

Result<std::unique_ptr<Listener>> AsioLoop::listen(const Endpoint& at, const ListenOptions& options,
                                                   AcceptHandler on_accept) {
  auto address = to_address(at);
  if (!address) return fail(address.error());
  const auto socket = ports_->listen(*address, options);
  if (!socket) return fail(socket.error());
  return std::make_unique<AsioListener>(*this, *socket, *address, ports_, std::move(on_accept));
}

void AsioLoop::connect(const Endpoint& to, Time deadline, ConnectHandler done) {
  std::make_shared<AsioConnect>(*this, to, std::move(done))->start(deadline);
}

}  // namespace sluice::io
