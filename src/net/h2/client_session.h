// HTTP/2 on the client's side: calls become streams of one connection.
#pragma once

#include <memory>
#include <vector>

#include "net/client_call.h"
#include "net/h2/session.h"

namespace sluice::net::h2 {

class ClientSessionH2 final : public SessionBase, public ClientSession {
 public:
  ClientSessionH2(Connection& connection, ClientHost& host);
  ~ClientSessionH2() override;

  // ClientSession
  bool has_room() const override;
  std::size_t open_calls() const override { return open_calls_; }
  void begin(ClientCall& call) override;
  void cancel(ClientCall& call) override;

  // Session
  void end_of_input() override;
  void advance() override {}
  bool notify_writable() override { return false; }
  Time deadline() const override;
  void expire(Time now) override;
  void broken(const Error& reason) override;

 private:
  struct ClientStream;

  void begin_headers(const nghttp2_frame&) override {}
  void header(StreamState* stream, const nghttp2_frame& frame, std::string_view name, std::string_view value) override;
  void data(StreamState* stream, std::int32_t id, Bytes chunk) override;
  void frame_received(StreamState* stream, const nghttp2_frame& frame) override;
  void invalid_frame_received(const nghttp2_frame&) override {}
  void frame_sent(const nghttp2_frame&) override {}
  void stream_closed(StreamState& stream, std::uint32_t error_code) override;

  ClientStream& acquire();
  void recycle(ClientStream& stream);
  void submit(ClientStream& stream);
  void head_complete(ClientStream& stream);
  void response_complete(ClientStream& stream);
  bool identifiers_left() const;
  void fail_call(ClientStream& stream, const Error& error, std::uint32_t reset_code);
  ClientCall* release(ClientStream& stream);

  ClientHost& host_;
  std::vector<std::unique_ptr<ClientStream>> live_;
  std::vector<std::unique_ptr<ClientStream>> idle_;
  std::size_t open_calls_ = 0;
  std::uint32_t server_max_streams_;
  bool going_away_ = false;
  Time idle_since_;
};

}  // namespace sluice::net::h2
