#include "io/asio/asio_stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "io/asio/asio_loop.h"

namespace sluice::io {

AsioStream::AsioStream(AsioLoop& loop, TcpSocket socket, const asio::ip::tcp::endpoint& peer)
    : loop_(loop),
      socket_(std::move(socket)),
      descriptor_(socket_.native_handle()),
      peer_(to_string(to_endpoint(peer))),
      alive_(std::make_shared<char>()) {
  // Writes are gathered by their owner; the kernel must not hold them back.
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void AsioStream::set_events(StreamEvents* events) {
  SLUICE_CHECK(events_ == nullptr, "a stream's events are set once");
  events_ = events;
}

IoResult AsioStream::fail_with(int error) {
  error_.message = fmt::format("connection to {} failed: {}", peer_, std::generic_category().message(error));
  return {IoState::kFailed, 0};
}

IoResult AsioStream::read(MutableBytes into) {
  if (std::exchange(reading_.stalled, false)) return {IoState::kWouldBlock, 0};
  ssize_t moved = 0;
  do {
    moved = ::recv(descriptor_, into.data(), into.size(), MSG_DONTWAIT);
  } while (moved < 0 && errno == EINTR);
  if (moved == 0) return {IoState::kEnd, 0};
  if (moved < 0) return errno == EAGAIN ? IoResult{IoState::kWouldBlock, 0} : fail_with(errno);
  const auto bytes = static_cast<std::size_t>(moved);
  reading_.stalled = bytes < into.size();
  return {IoState::kOk, bytes};
}

IoResult AsioStream::write(std::span<const Bytes> parts) {
  SLUICE_CHECK(parts.size() <= kMaxWriteParts, "a write has too many parts");
  if (std::exchange(writing_.stalled, false)) return {IoState::kWouldBlock, 0};
  std::array<iovec, kMaxWriteParts> vectors;
  std::size_t total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    total += parts[i].size();
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = parts.size();
  ssize_t moved = 0;
  do {
    moved = ::sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (moved < 0 && errno == EINTR);
  if (moved < 0) return errno == EAGAIN ? IoResult{IoState::kWouldBlock, 0} : fail_with(errno);
  const auto bytes = static_cast<std::size_t>(moved);
  writing_.stalled = bytes < total;
  return {IoState::kOk, bytes};
}

void AsioStream::want_read() { wait(TcpSocket::wait_read, reading_); }

void AsioStream::want_write() { wait(TcpSocket::wait_write, writing_); }

void AsioStream::wait(TcpSocket::wait_type what, Direction& direction) {
  SLUICE_CHECK(events_ != nullptr, "set_events() comes before want_read() and want_write()");
  if (direction.waiting || !socket_.is_open()) return;
  direction.waiting = true;
  // Asio recycles the operation's memory: it is the block that the last wait gave back. An error shows
  // itself in the read or write that follows.
  socket_.async_wait(what, [this, what, &loop = loop_, alive = std::weak_ptr<void>(alive_)](const error_code&) {
    if (alive.expired() || !socket_.is_open()) return;  // destroyed or closed meanwhile
    const AsioLoop::Turn turn(loop);
    // The event is the last thing here: it may destroy the stream.
    if (what == TcpSocket::wait_read) {
      reading_ = {};
      events_->on_readable();
    } else {
      writing_ = {};
      events_->on_writable();
    }
  });
}

void AsioStream::shutdown_write() { ::shutdown(descriptor_, SHUT_WR); }

void AsioStream::close() {
  error_code ignored;
  socket_.close(ignored);
  descriptor_ = -1;  // later calls fail with "Bad file descriptor"
}

}  // namespace sluice::io
