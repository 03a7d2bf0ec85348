// HTTP/1.1 and 1.0 on the server's side (RFC 9112): one request at a time, its body, its response; what a client
// sends ahead (pipelining) waits, bounded, until the response before it has been written out.
//
//   kHead --head complete--> kBody --body complete--> kAnswer --response over--> kHead
//                                                                            \-> kClosed (no keep-alive, errors)
//
// A body of known length is read from the socket directly into the handler's memory when it has any.
#pragma once

#include <optional>
#include <string>

#include "net/h1/chunked_decoder.h"
#include "net/h1/head.h"
#include "net/server_exchange.h"

namespace sluice::net::h1 {

class ServerSession final : public Session {
 public:
  ServerSession(Connection& connection, ServerShared& shared);

  MutableBytes read_space(MutableBytes shared) override;
  bool received(Bytes bytes) override;
  void end_of_input() override;
  void advance() override;
  void produce(OutputQueue&) override {}
  bool notify_writable() override;
  Time deadline() const override;
  void expire(Time now) override;
  void broken(const Error& reason) override;
  bool done() const override { return input_ == Input::kClosed && exchange_.over(); }

  // The server drains: an idle connection closes, another one with its next response.
  void drain();

 private:
  enum class Input : std::uint8_t { kHead, kBody, kAnswer, kClosed };

  class H1Exchange final : public ServerExchange {
   public:
    H1Exchange(ServerSession& session, Connection& connection, ServerShared& shared)
        : ServerExchange(connection, shared), session_(session) {}

   private:
    void send_response(ResponseHead head, Payload body, Trailers trailers) override;
    void send_head(ResponseHead head) override;
    void send_piece(Payload piece) override;
    void send_end(Trailers trailers) override;
    void send_reset() override;
    void body_flow_changed() override { session_.body_flow_changed(); }
    std::size_t unsent_bytes() const override { return connection_.output().size(); }

    enum class BodyFraming : std::uint8_t { kNone, kLength, kChunked, kUntilClose };
    void write_head(const ResponseHead& head, BodyFraming framing, std::size_t length);
    void write_body(Payload body);
    void write_last_chunk(const Trailers& trailers);

    ServerSession& session_;
    bool chunked_ = false;   // the response's framing
    bool has_body_ = false;  // false: HEAD, or a status without a body
    std::string text_;
  };

  std::size_t process(Bytes bytes);
  std::size_t take_head(Bytes bytes);
  void head_complete(Bytes head, std::size_t bytes_behind);
  std::size_t take_body(Bytes bytes);
  std::size_t take_chunked(Bytes bytes);
  void body_complete();
  void bad_body(int status, Code code, std::string message);
  void refuse_input(int status, Code code, std::string message);
  void body_flow_changed();
  bool process_stash();
  void response_over();
  void next_request();
  bool body_unread() const { return input_ == Input::kBody && (framing_.chunked || body_left_ > 0); }
  bool output_full() const { return connection_.output().size() >= shared_.limits.max_unsent_bytes; }

  Connection& connection_;
  ServerShared& shared_;
  Input input_ = Input::kHead;
  HeadScanner scanner_;
  ChunkedDecoder decoder_;
  Framing framing_;
  std::uint64_t body_left_ = 0;  // of a body of known length
  bool direct_ = false;          // the space last given out was the handler's
  bool keep_alive_ = true;
  bool continue_due_ = false;    // "100 Continue" is waited for
  bool retired_ = true;          // the exchange's end has been dealt with
  bool held_back_ = false;       // no next request until the output has drained
  std::string stash_;            // bytes that wait: an unfinished head, requests ahead, a paused body
  Time idle_since_;
  Time head_since_ = kNever;     // when the first byte of the head arrived
  Time body_since_{};            // when the body's last byte arrived
  H1Exchange exchange_;
};

}  // namespace sluice::net::h1
