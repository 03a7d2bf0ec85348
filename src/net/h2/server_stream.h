// One stream of an HTTP/2 server session: an exchange and the state of its two bodies.
#pragma once

#include <array>
#include <string>

#include "net/h2/server_session.h"

namespace sluice::net::h2 {

class ServerSession::ServerStream final : public StreamState, public ServerExchange {
 public:
  ServerStream(ServerSession& session, Connection& connection, ServerShared& shared)
      : ServerExchange(connection, shared), session_(session) {}

  void begin(std::int32_t stream_id);

  std::size_t head_bytes = 0;  // as HPACK counts them (RFC 7541, 4.1)
  std::size_t index = 0;       // in ServerSession::live_
  std::string held;            // body bytes that arrived while the handler paused; bounded by the window
  bool head_known = false;
  bool end_held = false;       // the body's end arrived behind held bytes
  bool closed = false;         // nghttp2 has forgotten the stream
  bool retired = true;         // not in ServerSession::ended_
  bool resumed = false;        // in ServerSession::resumed_
  bool writes = false;         // in ServerSession::writers_

 private:
  void send_response(ResponseHead head, Payload body, Trailers trailers) override;
  void send_head(ResponseHead head) override;
  void send_piece(Payload piece) override;
  void send_end(Trailers trailers) override;
  void send_reset() override;
  void body_flow_changed() override;
  std::size_t unsent_bytes() const override { return body.size(); }
  void ended() override;

  void begin_fields();
  void submit(bool with_body);

  ServerSession& session_;
  ResponseHead response_;
  std::array<char, 3> status_text_{};
  std::string length_text_;
};

}  // namespace sluice::net::h2
