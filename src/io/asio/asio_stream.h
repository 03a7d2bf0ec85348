// A TCP connection as a Stream: bytes are moved by system calls on the descriptor, Asio only says when.
//
// System calls for a message that arrives alone and is answered: epoll_wait, recv, sendmsg, epoll_ctl.
// A read or write that moved less than was asked has emptied or filled the socket; the next try is
// answered without the kernel, because want_*() has the kernel look again anyway.
#pragma once

#include <memory>

#include "io/asio/boost_asio.h"
#include "io/stream.h"

namespace sluice::io {

class AsioLoop;

class AsioStream final : public Stream {
 public:
  // `socket` is connected and non-blocking.
  AsioStream(AsioLoop& loop, TcpSocket socket, const asio::ip::tcp::endpoint& peer);

  void set_events(StreamEvents* events) override;
  IoResult read(MutableBytes into) override;
  IoResult write(std::span<const Bytes> parts) override;
  void want_read() override;
  void want_write() override;
  void shutdown_write() override;
  void close() override;
  Error error() const override { return error_; }
  const std::string& peer() const override { return peer_; }

 private:
  struct Direction {
    bool waiting = false;  // a wait is with Asio
    bool stalled = false;  // the last call moved less than was asked
  };
  void wait(TcpSocket::wait_type what, Direction& direction);
  IoResult fail_with(int error);

  AsioLoop& loop_;
  TcpSocket socket_;
  int descriptor_;
  StreamEvents* events_ = nullptr;
  Direction reading_;
  Direction writing_;
  std::string peer_;
  Error error_{Code::kUnavailable, "the connection has not failed"};
  std::shared_ptr<void> alive_;  // watched by the handlers that may come after this stream's end
};

}  // namespace sluice::io
