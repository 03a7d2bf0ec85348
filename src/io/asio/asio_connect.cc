#include "io/asio/asio_connect.h"

#include <utility>

#include <fmt/format.h>

#include "io/asio/asio_loop.h"
#include "io/asio/asio_stream.h"

namespace sluice::io {

AsioConnect::AsioConnect(AsioLoop& loop, Endpoint to, Loop::ConnectHandler done)
    : loop_(loop),
      to_(std::move(to)),
      done_(std::move(done)),
      deadline_(loop.timers(),
                [this] {
                  finish(fail(Code::kDeadlineExceeded,
                              fmt::format("connecting to {} did not end before its deadline", to_string(to_))));
                }),
      resolver_(loop.context()),
      socket_(loop.context()) {}

void AsioConnect::start(Time deadline) {
  deadline_.arm(deadline);
  error_code no_address;
  const auto address = asio::ip::make_address(to_.host, no_address);
  if (no_address) return resolve();
  addresses_.emplace_back(address, to_.port);
  try_next({});
}

void AsioConnect::resolve() {
  resolver_.async_resolve(to_.host, std::to_string(to_.port), TcpResolver::numeric_service,
                          [self = shared_from_this()](const error_code& error, auto results) {
                            const AsioLoop::Turn turn(self->loop_);
                            for (const auto& result : results) self->addresses_.push_back(result.endpoint());
                            self->try_next({Code::kUnavailable, fmt::format("cannot resolve the host '{}': {}",
                                                                            self->to_.host, error.message())});
                          });
}

void AsioConnect::try_next(Error last_error) {
  if (!done_) return;
  if (next_address_ == addresses_.size()) return finish(fail(std::move(last_error)));
  const auto address = addresses_[next_address_++];
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(address, [self = shared_from_this(), address](const error_code& error) {
    const AsioLoop::Turn turn(self->loop_);
    if (!self->done_) return;
    if (error) {
      return self->try_next({Code::kUnavailable, fmt::format("cannot connect to {}: {}",
                                                             to_string(to_endpoint(address)), error.message())});
    }
    self->finish(std::make_unique<AsioStream>(self->loop_, std::move(self->socket_), address));
  });
}

void AsioConnect::finish(Result<std::unique_ptr<Stream>> result) {
  if (!done_) return;
  auto done = std::exchange(done_, nullptr);
  deadline_.disarm();
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
  done(std::move(result));
}

}  // namespace sluice::io
