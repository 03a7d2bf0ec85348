// The client's side: a pool of connections to one endpoint, HTTP/1.1 or HTTP/2 (prior knowledge).
// Used by the command line, the bench, the simulator's clients and later the router.
//
// Thread: one HttpClient belongs to one loop. Limits: connections, streams a connection, waiting requests
// (beyond: kResourceExhausted), time. A connection that breaks fails its requests (kUnavailable); nothing is
// retried here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "io/loop.h"
#include "net/http.h"
#include "tensor/tensor.h"

namespace sluice::net {

struct ClientOptions {
  io::Endpoint endpoint;
  Protocol protocol = Protocol::kHttp2;
  std::size_t max_connections = 1;          // h1: one request at a time each
  std::size_t max_streams = 1024;           // h2, further limited by the server's settings
  std::size_t max_waiting = 65536;
  std::size_t max_header_bytes = 64 * 1024;
  std::size_t max_body_bytes = std::size_t{1} << 30;
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::minutes(2);
  std::uint32_t stream_window_bytes = 1 << 20;
  std::uint32_t connection_window_bytes = 16 << 20;
};

struct ClientRequest {
  Method method = Method::kGet;
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers;  // lower-case names; host/:authority is added
  Payload body;
  Time deadline = kNever;  // then the request is reset and fails with kDeadlineExceeded
};

struct ClientResponseHead {
  int status = 0;
  Headers headers;
};

// A response as it arrives. Exactly one of on_end and on_error is the last call.
class ResponseHandler {
 public:
  virtual ~ResponseHandler() = default;
  virtual void on_head(ClientResponseHead head) = 0;
  virtual MutableBytes body_target() { return {}; }
  virtual void on_placed(std::size_t) {}
  virtual void on_data(Bytes chunk) = 0;
  virtual void on_end(const Headers& trailers) = 0;
  virtual void on_error(const Error& error) = 0;
};

using CallId = std::uint64_t;

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
  Headers trailers;
};

class HttpClient {
 public:
  HttpClient(io::Loop& loop, const ClientOptions& options);
  // What is open fails with kCancelled.
  ~HttpClient();

  // The handler is owned until its last call. May call back only after returning.
  CallId send(ClientRequest request, std::unique_ptr<ResponseHandler> handler);
  // Collects the body (at most max_body_bytes).
  CallId send(ClientRequest request, Function<void(Result<ClientResponse>)> done);
  // The handler's on_error(kCancelled) is called, unless the call is over. The server sees RST_STREAM(CANCEL)
  // or a closed connection.
  void cancel(CallId id);

  std::size_t open_calls() const;
  std::size_t open_connections() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::net
