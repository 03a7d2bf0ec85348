// One request of a client and its response, and what the pool and a connection's session say to each other.
//
//   HttpClient (pool) --begin, cancel--> ClientSession (h1 | h2, one a connection)
//                     <--ClientHost-----
//
// Owner: the pool. A session holds a call from begin() until it has reported its end or cancel() took it back.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "net/client.h"
#include "net/transport/connection.h"

namespace sluice::net {

namespace h2 {
struct StreamState;
}
class ClientSession;

struct ClientCall {
  CallId id = 0;
  ClientRequest request;
  std::unique_ptr<ResponseHandler> handler;
  std::optional<io::Timer> deadline;
  ClientSession* session = nullptr;  // null until begin()
  bool waiting = false;
  std::list<ClientCall*>::iterator waiting_place;  // meaningful while it waits
  h2::StreamState* stream = nullptr;  // HTTP/2's
  std::uint64_t body_bytes = 0;
  bool cancelled = false;      // nothing more is delivered
};

// What the sessions of one client share, and where they report.
class ClientHost {
 public:
  explicit ClientHost(const ClientOptions& options) : options(options) {}

  // The call is over; it does not exist any more when this returns.
  virtual void call_ended(ClientCall& call, const Headers& trailers) = 0;
  virtual void call_failed(ClientCall& call, const Error& error) = 0;
  // has_room() may have become true, or the session takes no more calls.
  virtual void room_changed() = 0;

  const ClientOptions options;

 protected:
  ~ClientHost() = default;
};

class ClientSession {
 public:
  virtual bool has_room() const = 0;
  virtual std::size_t open_calls() const = 0;
  virtual void begin(ClientCall& call) = 0;
  // Forgets the call and tells the server so.
  virtual void cancel(ClientCall& call) = 0;

 protected:
  ~ClientSession() = default;
};

// Gives body bytes to the handler, into its own memory where it has some. False: the limit is exceeded.
bool deliver(ClientCall& call, Bytes bytes, std::size_t max_body_bytes);
bool deliver_placed(ClientCall& call, std::size_t bytes, std::size_t max_body_bytes);
Error body_limit_error(std::size_t max_body_bytes);

}  // namespace sluice::net
