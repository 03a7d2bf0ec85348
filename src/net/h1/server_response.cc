// How a response is written in HTTP/1.1: the part of ServerSession's exchange that produces bytes.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "net/field_text.h"
#include "net/h1/server_session.h"

namespace sluice::net::h1 {
namespace {

void append_fields(std::string& text, const std::vector<std::pair<std::string, std::string>>& fields) {
  for (const auto& [name, value] : fields) {
    text.append(name).append(": ").append(value).append("\r\n");
  }
}

}  // namespace

void ServerSession::H1Exchange::write_head(const ResponseHead& head, BodyFraming framing, std::size_t length) {
  bool& keep_alive = session_.keep_alive_;
  if (framing == BodyFraming::kUntilClose || shared_.draining) keep_alive = false;
  text_.clear();
  fmt::format_to(std::back_inserter(text_), "HTTP/1.1 {} {}\r\n", head.status, reason_phrase(head.status));
  append_fields(text_, head.headers);
  if (framing == BodyFraming::kLength) fmt::format_to(std::back_inserter(text_), "content-length: {}\r\n", length);
  if (framing == BodyFraming::kChunked) text_.append("transfer-encoding: chunked\r\n");
  if (!keep_alive) text_.append("connection: close\r\n");
  if (keep_alive && session_.framing_.minor_version == 0) text_.append("connection: keep-alive\r\n");
  text_.append("\r\n");
  connection_.output().append(text_);
}

void ServerSession::H1Exchange::send_response(ResponseHead head, Payload body, Trailers trailers) {
  // The rest of a body that nobody will read cannot be told from a next request: the connection ends.
  if (session_.body_unread()) session_.keep_alive_ = false;
  const bool status_has = status_has_body(head.status);
  has_body_ = status_has && !omits_body();
  chunked_ = has_body_ && !trailers.empty() && session_.framing_.minor_version == 1;
  const BodyFraming framing = !status_has ? BodyFraming::kNone
                              : chunked_  ? BodyFraming::kChunked
                                          : BodyFraming::kLength;
  write_head(head, framing, payload_size(body));
  write_body(std::move(body));
  if (chunked_) write_last_chunk(trailers);
}

void ServerSession::H1Exchange::send_head(ResponseHead head) {
  const bool status_has = status_has_body(head.status);
  has_body_ = status_has && !omits_body();
  const bool can_chunk = session_.framing_.minor_version == 1;
  chunked_ = has_body_ && can_chunk;
  const BodyFraming framing = !status_has ? BodyFraming::kNone
                              : can_chunk ? BodyFraming::kChunked
                                          : BodyFraming::kUntilClose;
  write_head(head, framing, 0);
}

void ServerSession::H1Exchange::send_piece(Payload piece) { write_body(std::move(piece)); }

void ServerSession::H1Exchange::write_body(Payload body) {
  const std::size_t size = payload_size(body);
  if (!has_body_ || size == 0) return;
  OutputQueue& out = connection_.output();
  if (chunked_) out.append(fmt::format("{:x}\r\n", size));
  for (Slice& slice : body) out.append(std::move(slice));
  if (chunked_) out.append("\r\n");
}

void ServerSession::H1Exchange::write_last_chunk(const Trailers& trailers) {
  text_.assign("0\r\n");
  append_fields(text_, trailers);
  text_.append("\r\n");
  connection_.output().append(text_);
}

void ServerSession::H1Exchange::send_end(Trailers trailers) {
  if (chunked_) write_last_chunk(trailers);
}

void ServerSession::H1Exchange::send_reset() {
  connection_.fail({Code::kCancelled, "the server broke the response off"});
}

}  // namespace sluice::net::h1
