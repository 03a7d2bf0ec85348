// The one door to Boost.Asio: what Sluice takes of it, compiled once (boost_asio.cc), and bound to
// io_context's own executor, which costs no type erasure.
#pragma once

#define BOOST_ASIO_SEPARATE_COMPILATION
#define BOOST_ASIO_NO_DEPRECATED
// A handler runs on the one thread of its io_context, whose mutex has ordered it after what it is to see:
// fences around each would only cost, and ThreadSanitizer does not know them.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

#include <chrono>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "io/loop.h"

namespace sluice::io {

namespace asio = boost::asio;
using boost::system::error_code;

using AsioExecutor = asio::io_context::executor_type;
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, AsioExecutor>;
using TcpAcceptor = asio::basic_socket_acceptor<asio::ip::tcp, AsioExecutor>;
using TcpResolver = asio::ip::basic_resolver<asio::ip::tcp, AsioExecutor>;
using KernelTimer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                               asio::wait_traits<std::chrono::steady_clock>, AsioExecutor>;

inline Endpoint to_endpoint(const asio::ip::tcp::endpoint& address) {
  return {address.address().to_string(), address.port()};
}

}  // namespace sluice::io
