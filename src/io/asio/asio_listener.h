// Accepts the connections of one listening socket, some in each turn of its loop, until it is destroyed.
// Owner: whoever listens; on its loop's thread. A failure to accept is counted and retried.
#pragma once

#include <memory>

#include "io/asio/boost_asio.h"
#include "io/asio/shared_ports.h"
#include "io/loop.h"

namespace sluice::io {

class AsioLoop;

// Takes over `socket`, which listens at `local`, and releases it at `ports`.
class AsioListener final : public Listener {
 public:
  AsioListener(AsioLoop& loop, int socket, const asio::ip::tcp::endpoint& local, std::shared_ptr<SharedPorts> ports,
               Loop::AcceptHandler on_accept);
  ~AsioListener() override;

  Endpoint local() const override { return to_endpoint(local_); }
  std::uint64_t accept_failures() const override { return failures_; }

 private:
  void wait();
  void accept_some();

  AsioLoop& loop_;
  TcpAcceptor acceptor_;
  asio::ip::tcp::endpoint local_;
  std::shared_ptr<SharedPorts> ports_;
  Loop::AcceptHandler on_accept_;
  Timer retry_;
  std::uint64_t failures_ = 0;
  std::shared_ptr<void> alive_;  // watched by the handler that may come after the listener's end
};

}  // namespace sluice::io
