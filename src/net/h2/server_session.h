// HTTP/2 on the server's side: streams become exchanges. Bounded: streams, header lists, bodies, unsent bytes,
// resets and control frames a client may send, and every wait by the one deadline of the session.
//
// A stream's object is used again for a later stream of the connection once it is closed and its handler gone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/h2/session.h"
#include "net/server_exchange.h"
#include "net/transport/token_bucket.h"

namespace sluice::net::h2 {

class ServerSession final : public SessionBase {
 public:
  ServerSession(Connection& connection, ServerShared& shared);
  ~ServerSession() override;

  bool received(Bytes bytes) override;
  void end_of_input() override;
  void advance() override;
  bool notify_writable() override;
  Time deadline() const override;
  void expire(Time now) override;
  void broken(const Error& reason) override;

  // GOAWAY that refuses nothing yet, and a ping; when the ping is answered (or kDrainGrace has passed) every
  // stream that the client could have opened before is known, and the second GOAWAY names the last one.
  void drain();

 private:
  class ServerStream;

  void begin_headers(const nghttp2_frame& frame) override;
  void header(StreamState* stream, const nghttp2_frame& frame, std::string_view name, std::string_view value) override;
  void data(StreamState* stream, std::int32_t id, Bytes chunk) override;
  void frame_received(StreamState* stream, const nghttp2_frame& frame) override;
  void invalid_frame_received(const nghttp2_frame& frame) override;
  void frame_sent(const nghttp2_frame& frame) override;
  void stream_closed(StreamState& stream, std::uint32_t error_code) override;

  void head_complete(ServerStream& stream, bool trailers);
  void request_complete(ServerStream& stream);
  void deliver_held(ServerStream& stream);
  void control_frame();
  void terminate(std::uint32_t error_code);
  void finish_drain();
  void expire_sender(Time now);
  ServerStream& acquire(std::int32_t id);
  void recycle(ServerStream& stream);

  ServerShared& shared_;
  std::vector<std::unique_ptr<ServerStream>> live_;
  std::vector<std::unique_ptr<ServerStream>> idle_;
  std::vector<ServerStream*> ended_;    // over, handler not yet destroyed
  std::vector<ServerStream*> resumed_;  // have held bytes to deliver
  std::vector<ServerStream*> writers_;  // have written in pieces; may wait for room
  TokenBucket resets_;
  TokenBucket control_frames_;
  Time idle_since_;
  Time head_since_ = kNever;
  Time drain_deadline_ = kNever;
};

}  // namespace sluice::net::h2
