// HTTP/1.1 on the client's side: one call at a time on a connection that is kept alive between them.
#pragma once

#include <optional>
#include <string>

#include "net/client_call.h"
#include "net/h1/chunked_decoder.h"
#include "net/h1/head.h"

namespace sluice::net::h1 {

class ClientSessionH1 final : public Session, public ClientSession {
 public:
  ClientSessionH1(Connection& connection, ClientHost& host)
      : connection_(connection), host_(host), idle_since_(connection.now()) {}

  // ClientSession
  bool has_room() const override { return input_ == Input::kIdle && connection_.output().empty(); }
  std::size_t open_calls() const override { return call_ ? 1 : 0; }
  void begin(ClientCall& call) override;
  void cancel(ClientCall& call) override;

  // Session
  MutableBytes read_space(MutableBytes shared) override;
  bool received(Bytes bytes) override;
  void end_of_input() override;
  void advance() override {}
  void produce(OutputQueue&) override {}
  bool notify_writable() override;
  Time deadline() const override;
  void expire(Time now) override;
  void broken(const Error& reason) override;
  bool done() const override { return input_ == Input::kClosed; }

 private:
  enum class Input : std::uint8_t { kIdle, kHead, kBody, kClosed };

  std::size_t process(Bytes bytes);
  std::size_t take_head(Bytes bytes);
  std::size_t take_body(Bytes bytes);
  std::size_t take_chunked(Bytes bytes);
  void head_complete(Bytes head);
  void response_complete();
  void fail_call(Error error);
  bool until_close() const { return !framing_.chunked && !framing_.content_length; }

  Connection& connection_;
  ClientHost& host_;
  Input input_ = Input::kIdle;
  ClientCall* call_ = nullptr;
  Method method_ = Method::kGet;
  HeadScanner scanner_;
  ChunkedDecoder decoder_;
  Framing framing_;
  std::uint64_t body_left_ = 0;
  bool direct_ = false;
  bool room_due_ = false;  // tell the pool when the output has drained
  std::string stash_;      // an unfinished head
  Time idle_since_;
};

}  // namespace sluice::net::h1
