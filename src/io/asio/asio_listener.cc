#include "io/asio/asio_listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "io/asio/asio_loop.h"
#include "io/asio/asio_stream.h"

namespace sluice::io {
namespace {

constexpr Duration kRetryAfter = std::chrono::milliseconds(100);
// Then the connections that are there already have their turn.
constexpr int kMaxAcceptsPerTurn = 64;

// A failure that concerns the one connection that was to be accepted, not the listener (accept(2)).
bool concerns_one_connection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
      return true;
    default:
      return false;
  }
}

}  // namespace

AsioListener::AsioListener(AsioLoop& loop, int socket, const asio::ip::tcp::endpoint& local,
                           std::shared_ptr<SharedPorts> ports, Loop::AcceptHandler on_accept)
    : loop_(loop),
      acceptor_(loop.context(), local.protocol(), socket),
      local_(local),
      ports_(std::move(ports)),
      on_accept_(std::move(on_accept)),
      retry_(loop.timers(), [this] { wait(); }),
      alive_(std::make_shared<char>()) {
  wait();
}

AsioListener::~AsioListener() {
  error_code ignored;
  acceptor_.close(ignored);
  ports_->release(local_);
}

void AsioListener::wait() {
  acceptor_.async_wait(TcpAcceptor::wait_read, [this, &loop = loop_,
                                                alive = std::weak_ptr<void>(alive_)](const error_code& /*or its end*/) {
    if (alive.expired()) return;
    const AsioLoop::Turn turn(loop);
    accept_some();
  });
}

void AsioListener::accept_some() {
  const std::weak_ptr<void> alive = alive_;
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    asio::ip::tcp::endpoint peer;
    auto length = static_cast<socklen_t>(peer.capacity());
    const int socket = ::accept4(acceptor_.native_handle(), peer.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EAGAIN) break;
      if (concerns_one_connection(errno)) continue;
      ++failures_;
      retry_.arm(loop_.now() + kRetryAfter);
      return;
    }
    peer.resize(length);
    on_accept_(std::make_unique<AsioStream>(loop_, TcpSocket(loop_.context(), peer.protocol(), socket), peer));
    if (alive.expired()) return;
  }
  wait();
}

}  // namespace sluice::io
