#include "net/h2/server_stream.h"

#include <algorithm>
#include <utility>

#include "net/field_text.h"

namespace sluice::net::h2 {

void ServerSession::ServerStream::begin(std::int32_t stream_id) {
  reset_state();
  id = stream_id;
  ServerExchange::begin(Protocol::kHttp2);
  head_bytes = 0;
  held.clear();
  head_known = end_held = closed = resumed = writes = false;
  retired = true;
}

void ServerSession::ServerStream::begin_fields() {
  const int status = std::clamp(response_.status, 100, 999);
  status_text_ = {static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                  static_cast<char>('0' + status % 10)};
  session_.clear_fields();
  session_.add_field(":status", {status_text_.data(), status_text_.size()});
  session_.add_fields(response_.headers);
}

void ServerSession::ServerStream::submit(bool with_body) {
  const nghttp2_data_provider provider = session_.provider(*this);
  const auto& fields = session_.fields();
  nghttp2_submit_response(session_.ng(), id, fields.data(), fields.size(), with_body ? &provider : nullptr);
}

void ServerSession::ServerStream::send_response(ResponseHead head, Payload payload, Trailers trailer_fields) {
  response_ = std::move(head);
  trailers = std::move(trailer_fields);
  finished = true;
  const std::size_t size = payload_size(payload);
  begin_fields();
  if (trailers.empty() && status_has_body(response_.status)) {
    length_text_ = std::to_string(size);
    session_.add_field("content-length", length_text_);
  }
  if (size > 0 && !omits_body() && status_has_body(response_.status)) {
    session_.push_body(*this, std::move(payload));
    submit(true);
  } else {
    session_.add_fields(trailers);  // gRPC's trailers-only response: one frame
    submit(false);
  }
}

void ServerSession::ServerStream::send_head(ResponseHead head) {
  response_ = std::move(head);
  begin_fields();
  submit(true);
}

void ServerSession::ServerStream::send_piece(Payload piece) {
  session_.push_body(*this, std::move(piece));
  if (!std::exchange(writes, true)) session_.writers_.push_back(this);
}

void ServerSession::ServerStream::send_end(Trailers trailer_fields) {
  trailers = std::move(trailer_fields);
  session_.finish_body(*this);
}

void ServerSession::ServerStream::send_reset() {
  nghttp2_submit_rst_stream(session_.ng(), NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
}

void ServerSession::ServerStream::body_flow_changed() {
  if (paused()) {
    receiving.unlink();
    return;
  }
  if (!request_ended() && !end_held) session_.receiving_.touch(receiving, connection_.now());
  if (!std::exchange(resumed, true)) session_.resumed_.push_back(this);
}

void ServerSession::ServerStream::ended() {
  receiving.unlink();
  if (std::exchange(retired, false)) session_.ended_.push_back(this);
}

}  // namespace sluice::net::h2
