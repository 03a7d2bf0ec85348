#include "io/asio/shared_ports.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace sluice::io {
namespace {

bool set_option(int socket, int option) {
  const int on = 1;
  return ::setsockopt(socket, SOL_SOCKET, option, &on, sizeof(on)) == 0;
}

std::unexpected<Error> fail_listen(const asio::ip::tcp::endpoint& at, int error) {
  const std::string address = to_string(to_endpoint(at));
  if (error == EADDRINUSE) return fail(Code::kUnavailable, fmt::format("address {} is already in use", address));
  return fail(Code::kUnavailable,
              fmt::format("cannot listen on {}: {}", address, std::generic_category().message(error)));
}

// 0, or the error.
int bind_and_listen(int socket, asio::ip::tcp::endpoint& at, const ListenOptions& options, bool joins) {
  // A restart must not wait for the connections of the last run to leave TIME_WAIT.
  if (!set_option(socket, SO_REUSEADDR)) return errno;
  if (joins && !set_option(socket, SO_REUSEPORT)) return errno;
  if (::bind(socket, at.data(), static_cast<socklen_t>(at.size())) != 0) return errno;
  if (options.share_port && !joins && !set_option(socket, SO_REUSEPORT)) return errno;
  if (::listen(socket, options.backlog) != 0) return errno;
  auto length = static_cast<socklen_t>(at.capacity());
  if (::getsockname(socket, at.data(), &length) != 0) return errno;
  return 0;
}

}  // namespace

Result<int> SharedPorts::listen(asio::ip::tcp::endpoint& at, const ListenOptions& options) {
  const int socket = ::socket(at.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail_listen(at, errno);
  const std::lock_guard lock(mutex_);
  const bool joins = options.share_port && listeners_.contains(at);
  if (const int error = bind_and_listen(socket, at, options, joins); error != 0) {
    ::close(socket);
    return fail_listen(at, error);
  }
  if (options.share_port) ++listeners_[at];
  return socket;
}

void SharedPorts::release(const asio::ip::tcp::endpoint& at) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(at);
  if (found != listeners_.end() && --found->second == 0) listeners_.erase(found);
}

}  // namespace sluice::io
