// One attempt to connect: resolve the name, try its addresses in order, all before the deadline.
// It lives as long as an operation of its is pending, and calls `done` once, unless its loop ends first.
#pragma once

#include <memory>
#include <vector>

#include "io/asio/boost_asio.h"
#include "io/loop.h"

namespace sluice::io {

class AsioLoop;

class AsioConnect : public std::enable_shared_from_this<AsioConnect> {
 public:
  AsioConnect(AsioLoop& loop, Endpoint to, Loop::ConnectHandler done);
  void start(Time deadline);

 private:
  void resolve();
  void try_next(Error last_error);
  void finish(Result<std::unique_ptr<Stream>> result);

  AsioLoop& loop_;
  const Endpoint to_;
  Loop::ConnectHandler done_;  // empty: finished
  Timer deadline_;
  TcpResolver resolver_;
  TcpSocket socket_;
  std::vector<asio::ip::tcp::endpoint> addresses_;
  std::size_t next_address_ = 0;
};

}  // namespace sluice::io
