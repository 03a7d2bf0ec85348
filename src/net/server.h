// The server's side: connections that speak HTTP/1.1 and HTTP/2 (prior knowledge) on one port, told apart by
// the preface. net does bytes, flow control, limits and drain; what a request means is a Service's business.
//
//   Listener -> connection (h1 | h2) -> Exchange <-> RequestHandler (made by the Service, one a request)
//
// Thread: one HttpServer belongs to one loop, and so do its connections, exchanges and handlers. Several
// loops have a server each on a shared port. Owner: connection owns exchanges, an exchange owns its handler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "io/loop.h"
#include "net/http.h"
#include "stats/log.h"
#include "tensor/tensor.h"

namespace sluice::net {

struct ServerLimits {
  std::size_t max_header_bytes = 64 * 1024;        // of one request: 431, or a refused stream
  std::size_t max_body_bytes = std::size_t{1} << 30;  // 413 naming the limit
  std::uint32_t max_streams = 1024;                // at once on one HTTP/2 connection
  std::size_t max_connections = 16384;             // per loop; one more is closed at once
  std::size_t max_unsent_bytes = std::size_t{4} << 20;  // streamed writes: writable() turns false above
  Duration idle_timeout = std::chrono::minutes(5);      // no request open
  Duration header_timeout = std::chrono::seconds(10);   // from a request's first byte to its complete head
  Duration body_stall_timeout = std::chrono::seconds(30);   // no byte of an unfinished body arrives
  Duration write_stall_timeout = std::chrono::seconds(30);  // the peer takes no byte of what is ready
  std::uint32_t stream_window_bytes = 1 << 20;
  std::uint32_t connection_window_bytes = 16 << 20;
};

class Exchange;

// One request's side of the application.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Where the next body bytes should land. Empty: net passes its own chunks to on_data. Otherwise net may
  // read from the socket (HTTP/1.1) or copy (HTTP/2) into a prefix and call on_placed(n).
  virtual MutableBytes body_target() { return {}; }
  virtual void on_placed(std::size_t) {}
  virtual void on_data(Bytes chunk) = 0;
  virtual void on_end() = 0;
  // The request is over before its response was finished: the peer reset or left, a limit or a time-out was
  // hit, the server closes. Last call; the exchange must not be used from here on.
  virtual void on_abort(const Error& reason) = 0;
  // writable() has become true again.
  virtual void on_writable() {}
};

// One request and its response. Ends when the response is finished (and, on HTTP/1.1, sent or buffered).
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const RequestHead& head() const = 0;
  virtual io::Loop& loop() = 0;
  virtual const std::string& peer() const = 0;

  // The whole response at once; may come before the request's end, whose rest is then dropped (h2: trailers
  // go out, then RST_STREAM(NO_ERROR); h1: the connection closes after the answer when the body is unread).
  // With trailers the body may be empty (gRPC "trailers-only" when head and trailers are all there is).
  // After this, or after finish(), the exchange destroys its handler when the current call returns.
  virtual void respond(ResponseHead head, Payload body, Trailers trailers = {}) = 0;

  // Or in pieces: start, write*, finish.
  virtual void start(ResponseHead head) = 0;
  virtual void write(Payload piece) = 0;
  virtual void finish(Trailers trailers = {}) = 0;
  virtual bool writable() const = 0;  // less than max_unsent_bytes wait for the peer

  // Breaks the stream (h2: RST_STREAM INTERNAL_ERROR; h1: closes). No on_abort follows.
  virtual void reset() = 0;

  // Back-pressure: no more on_data until resume_body(); the peer is held by flow control.
  virtual void pause_body() = 0;
  virtual void resume_body() = 0;

  // HTTP/1.1 only: answers "Expect: 100-continue" if it was asked for; net does so by itself at the first
  // moment it wants body bytes.
};

class Service {
 public:
  virtual ~Service() = default;
  // Called when a request's head is complete. The handler may respond at once, from on_data or later.
  // Returning nullptr is allowed after respond().
  virtual std::unique_ptr<RequestHandler> open(Exchange& exchange) = 0;
};

struct ServerCounters {
  std::uint64_t connections_accepted = 0, connections_open = 0, connections_refused = 0;
  std::uint64_t requests = 0, requests_open = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t protocol_errors = 0, timeouts = 0;
};

class HttpServer {
 public:
  HttpServer(io::Loop& loop, Service& service, const ServerLimits& limits, const Log* log);
  // Aborts what is still open.
  ~HttpServer();

  Result<io::Endpoint> listen(const io::Endpoint& at, const io::ListenOptions& options);

  // Stops accepting; GOAWAY on HTTP/2 (first with the highest id, then with the real one), "connection: close"
  // on the next HTTP/1.1 response; idle connections close. `drained` runs once when the last one is gone.
  void drain(Function<void()> drained);

  ServerCounters counters() const;  // on the loop

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::net
