// The ports on which several loops of this process listen together.
//
// SO_REUSEPORT alone would let any process of the same user take a share of the connections in silence.
// So the first socket is bound without it, which the kernel refuses when anybody has the port, and gets
// the option afterwards; only sockets that find the port in this table are bound with the option.
//
// Thread: any.
#pragma once

#include <map>
#include <mutex>

#include "io/asio/boost_asio.h"

namespace sluice::io {

class SharedPorts {
 public:
  // Binds and listens; returns the descriptor. Each success wants a release(). `at` gets the port that was taken.
  Result<int> listen(asio::ip::tcp::endpoint& at, const ListenOptions& options);
  void release(const asio::ip::tcp::endpoint& at);

 private:
  std::mutex mutex_;
  std::map<asio::ip::tcp::endpoint, int> listeners_;  // of shared ports: how many
};

}  // namespace sluice::io
