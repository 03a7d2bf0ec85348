// A service for tests: what it does with a request is in the path.
//
//   /echo    answers the whole body; a gRPC request with grpc-status 0 in the trailers
//   /place   as /echo, but the body is placed in memory of the handler's
//   /early   answers "early" at once, whatever the body
//   /hold    answers "held" when release() is called
//   /stream  answers `?bytes` bytes in pieces of 1000, as fast as the peer takes them, then a trailer
//   /reset   breaks the stream at the body's end
//   /pause   as /echo, but takes the body only after release()
//   others   404
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "net/server.h"

namespace sluice::net {

class TestService final : public Service {
 public:
  std::unique_ptr<RequestHandler> open(Exchange& exchange) override {
    const RequestHead& head = exchange.head();
    last_target = head.target;
    ++opened;
    if (head.path() == "/early") {
      exchange.respond({}, text("early"));
      return nullptr;
    }
    for (const std::string_view path : {"/echo", "/place", "/hold", "/stream", "/reset", "/pause"}) {
      if (head.path() == path) return std::make_unique<Handler>(*this, exchange, path);
    }
    exchange.respond({.status = 404, .headers = {}}, text("no such path"));
    return nullptr;
  }

  // Lets every held request go on.
  void release() {
    for (Handler* handler : std::exchange(held_, {})) handler->release();
  }

  static Payload text(std::string content) {
    Payload payload;
    payload.emplace_back(std::move(content));
    return payload;
  }

  std::string last_target;
  int opened = 0;
  int handlers = 0;   // alive
  int completed = 0;  // saw on_end
  std::size_t held() const { return held_.size(); }
  std::vector<Error> aborts;
  std::size_t largest_chunk = 0;
  std::size_t placed = 0;
  std::size_t written = 0;  // by /stream

 private:
  class Handler final : public RequestHandler {
   public:
    Handler(TestService& service, Exchange& exchange, std::string_view path)
        : service_(service), exchange_(exchange), path_(path) {
      ++service_.handlers;
      if (path_ == "/place") place_.resize(exchange.head().content_length.value_or(1 << 20));
      if (path_ == "/pause") {
        exchange_.pause_body();
        hold();
      }
    }
    ~Handler() override {
      --service_.handlers;
      std::erase(service_.held_, this);
    }

    MutableBytes body_target() override {
      if (path_ != "/place") return {};
      return std::as_writable_bytes(std::span(place_)).subspan(filled_);
    }
    void on_placed(std::size_t bytes) override {
      filled_ += bytes;
      service_.placed += bytes;
    }
    void on_data(Bytes chunk) override {
      service_.largest_chunk = std::max(service_.largest_chunk, chunk.size());
      body_ += as_text(chunk);
    }
    void on_end() override {
      ++service_.completed;
      if (path_ == "/hold") return hold();
      if (path_ == "/reset") return exchange_.reset();
      if (path_ == "/stream") return begin_stream();
      if (path_ == "/place") body_ = place_.substr(0, filled_);
      respond(std::move(body_));
    }
    void on_abort(const Error& reason) override { service_.aborts.push_back(reason); }
    void on_writable() override { stream(); }

    void release() {
      if (path_ == "/pause") {
        exchange_.resume_body();
      } else {
        respond("held");
      }
    }

   private:
    void hold() { service_.held_.push_back(this); }
    void respond(std::string body) {
      const auto type = exchange_.head().headers.get("content-type");
      ResponseHead head;
      if (type) head.headers.emplace_back("content-type", *type);
      if (type && type->starts_with("application/grpc")) {
        exchange_.respond(std::move(head), text(std::move(body)), {{"grpc-status", "0"}});
      } else {
        exchange_.respond(std::move(head), text(std::move(body)));
      }
    }
    void begin_stream() {
      const std::string& target = exchange_.head().target;
      const std::size_t at = target.find('=') + 1;
      std::from_chars(target.data() + at, target.data() + target.size(), left_);
      exchange_.start({});
      stream();
    }
    void stream() {
      while (left_ > 0 && exchange_.writable()) {
        const std::size_t n = std::min<std::size_t>(left_, 1000);
        left_ -= n;
        service_.written += n;
        exchange_.write(text(std::string(n, 's')));
      }
      if (left_ == 0) exchange_.finish({{"streamed", "all"}});
    }

    TestService& service_;
    Exchange& exchange_;
    const std::string path_;
    std::string body_;
    std::string place_;
    std::size_t filled_ = 0;
    std::size_t left_ = 0;
  };

  std::vector<Handler*> held_;
};

}  // namespace sluice::net
