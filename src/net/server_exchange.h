// The state of one request and its response that both protocols share: which calls are legal when, the limit on
// the body, and the end of the handler.
//
//              start()                finish()
//   kAwaiting ---------> kStreaming ------------> kFinished
//       |  respond() -------------------------------^
//       +--- abort(), reset(), a time-out ... ---> kDead      (from kStreaming as well)
//
// on_abort is called exactly when the application had not finished and did not reset. A handler is destroyed by
// retire(), which sessions call when none of the application's calls is on the stack.
// An out-of-order call by the application is a bug and fails a check.
#pragma once

#include <cstdint>
#include <memory>

#include "net/server.h"
#include "net/transport/connection.h"

namespace sluice::net {

// What the connections of one server share.
struct ServerShared {
  Service& service;
  const ServerLimits limits;
  const Log* log;
  ServerCounters counters;
  bool draining = false;
};

class ServerExchange : public Exchange {
 public:
  ServerExchange(Connection& connection, ServerShared& shared) : connection_(connection), shared_(shared) {}

  // Exchange, for the application.
  const RequestHead& head() const final { return head_; }
  io::Loop& loop() final { return connection_.loop(); }
  const std::string& peer() const final { return connection_.peer(); }
  void respond(ResponseHead head, Payload body, Trailers trailers) final;
  void start(ResponseHead head) final;
  void write(Payload piece) final;
  void finish(Trailers trailers) final;
  bool writable() const final { return unsent_bytes() < shared_.limits.max_unsent_bytes; }
  void reset() final;
  void pause_body() final;
  void resume_body() final;

  // What follows is for the session.

  // A fresh head to fill; keeps what memory it has. Over until open().
  void begin(Protocol protocol);
  RequestHead& mutable_head() { return head_; }
  // The head is complete: hands the request to the service.
  void open();
  // The head is complete, but the request is refused without the service.
  void open_refused(int status, const Error& reason);
  // Gives body bytes to the handler until it pauses or the exchange is over; returns how many were taken.
  // Bytes for an exchange that is over are taken and dropped.
  std::size_t deliver(Bytes bytes);
  // Where bytes may be put without deliver(); empty when the handler has no place. placed() follows.
  MutableBytes body_target();
  void placed(std::size_t bytes);
  void deliver_end();
  // The peer has gone. No effect on an exchange that is over.
  void abort(const Error& reason);
  // Ends the request with on_abort, and with an answer of `status` if none has begun.
  void refuse(int status, const Error& reason);
  // Calls on_writable if the handler waits for it and may go on; whether it did.
  bool notify_writable();
  // Destroys the handler of an exchange that is over.
  void retire();

  bool over() const { return phase_ == Phase::kFinished || phase_ == Phase::kDead; }
  bool dead() const { return phase_ == Phase::kDead; }
  bool paused() const { return paused_; }
  bool request_ended() const { return request_ended_; }
  bool awaits_room() const { return awaits_room_; }
  bool omits_body() const { return head_.method == Method::kHead; }

 protected:
  // What the protocol does. After send_response(), send_end() and send_reset() the exchange is over.
  virtual void send_response(ResponseHead head, Payload body, Trailers trailers) = 0;
  virtual void send_head(ResponseHead head) = 0;
  virtual void send_piece(Payload piece) = 0;
  virtual void send_end(Trailers trailers) = 0;
  virtual void send_reset() = 0;
  virtual void body_flow_changed() = 0;
  virtual std::size_t unsent_bytes() const = 0;
  virtual void ended() {}  // the exchange has just become over

  Connection& connection_;
  ServerShared& shared_;

 private:
  enum class Phase : std::uint8_t { kAwaiting, kStreaming, kFinished, kDead };
  void admit();
  void end(Phase phase);
  bool count_body(std::size_t bytes);

  RequestHead head_;
  std::unique_ptr<RequestHandler> handler_;
  std::uint64_t body_bytes_ = 0;
  Phase phase_ = Phase::kDead;
  bool request_ended_ = false;
  bool paused_ = false;
  bool awaits_room_ = false;
};

}  // namespace sluice::net
