#include "net/h2/client_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/check.h"
#include "net/field_text.h"

namespace sluice::net::h2 {
namespace {

// Until the server's settings say otherwise (RFC 9113, 6.5.2 recommends no smaller limit).
constexpr std::uint32_t kStreamsBeforeSettings = 100;
constexpr std::size_t kMaxIdleStreams = 128;

bool ends_stream(const nghttp2_frame& frame) { return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0; }

// As gRPC maps them (PROTOCOL-HTTP2.md, "Errors").
Code to_code(std::uint32_t error_code) {
  switch (error_code) {
    case NGHTTP2_REFUSED_STREAM: return Code::kUnavailable;
    case NGHTTP2_CANCEL: return Code::kCancelled;
    case NGHTTP2_ENHANCE_YOUR_CALM: return Code::kResourceExhausted;
    case NGHTTP2_INADEQUATE_SECURITY: return Code::kPermissionDenied;
    default: return Code::kInternal;
  }
}

}  // namespace

struct ClientSessionH2::ClientStream : StreamState {
  ClientCall* call = nullptr;  // null when the call is over and the stream not yet
  ClientRequest request;       // its texts are referred to until the stream closes
  std::string length_text;
  ClientResponseHead head;
  Headers trailers;
  std::size_t head_bytes = 0;
  bool head_given = false;
  std::size_t index = 0;
};

ClientSessionH2::ClientSessionH2(Connection& connection, ClientHost& host)
    : SessionBase(connection, Side::kClient),
      host_(host),
      server_max_streams_(kStreamsBeforeSettings),
      idle_since_(connection.now()) {
  const ClientOptions& options = host.options;
  submit_settings({{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.stream_window_bytes},
                   {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(options.max_header_bytes)},
                   {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}},
                  {options.stream_window_bytes, options.connection_window_bytes});
}

ClientSessionH2::~ClientSessionH2() = default;

bool ClientSessionH2::has_room() const {
  const std::size_t limit = std::min<std::size_t>(host_.options.max_streams, server_max_streams_);
  return !going_away_ && live_.size() < limit && identifiers_left();
}

// 2^30 requests use them up; then the connection has had its time.
bool ClientSessionH2::identifiers_left() const {
  constexpr std::uint32_t kLastIdentifier = std::numeric_limits<std::int32_t>::max();
  return nghttp2_session_get_next_stream_id(ng()) <= kLastIdentifier;
}

ClientSessionH2::ClientStream& ClientSessionH2::acquire() {
  if (idle_.empty()) {
    live_.push_back(std::make_unique<ClientStream>());
  } else {
    live_.push_back(std::move(idle_.back()));
    idle_.pop_back();
  }
  live_.back()->index = live_.size() - 1;
  return *live_.back();
}

void ClientSessionH2::recycle(ClientStream& stream) {
  const std::size_t index = stream.index;
  std::swap(live_[index], live_.back());
  live_[index]->index = index;
  std::unique_ptr<ClientStream> gone = std::move(live_.back());
  live_.pop_back();
  gone->reset_state();
  gone->request = ClientRequest();
  gone->head = ClientResponseHead();
  gone->trailers.clear();
  gone->head_bytes = 0;
  gone->head_given = false;
  if (live_.empty()) idle_since_ = connection_.now();
  if (live_.empty() && !identifiers_left()) nghttp2_session_terminate_session(ng(), NGHTTP2_NO_ERROR);
  if (idle_.size() < kMaxIdleStreams) idle_.push_back(std::move(gone));
}

void ClientSessionH2::begin(ClientCall& call) {
  ClientStream& stream = acquire();
  stream.call = &call;
  stream.request = std::move(call.request);
  call.session = this;
  ++open_calls_;
  submit(stream);
  connection_.schedule();
}

void ClientSessionH2::submit(ClientStream& stream) {
  ClientRequest& request = stream.request;
  const std::size_t size = payload_size(request.body);
  clear_fields();
  add_field(":method", method_name(request.method));
  add_field(":scheme", "http");
  add_field(":path", request.target);
  request.headers.emplace_back(":authority", io::to_string(host_.options.endpoint));
  add_field(request.headers.back().first, request.headers.back().second);
  for (auto& [name, value] : request.headers) {
    make_field_value(value);
    if (!name.starts_with(':') && name != "host") add_field(name, value);
  }
  if (size > 0) {
    stream.length_text = std::to_string(size);
    add_field("content-length", stream.length_text);
  }
  stream.finished = true;
  const nghttp2_data_provider body = provider(stream);
  auto* state = static_cast<StreamState*>(&stream);
  const nghttp2_data_provider* source = size > 0 ? &body : nullptr;
  stream.id = nghttp2_submit_request(ng(), nullptr, fields().data(), fields().size(), source, state);
  SLUICE_CHECK(stream.id > 0, "no memory for an HTTP/2 request");
  stream.call->stream = &stream;
  push_body(stream, std::move(request.body));
}

// The stream lives on until nghttp2 closes it.
ClientCall* ClientSessionH2::release(ClientStream& stream) {
  --open_calls_;
  return std::exchange(stream.call, nullptr);
}

void ClientSessionH2::cancel(ClientCall& call) {
  auto& stream = static_cast<ClientStream&>(*call.stream);
  release(stream);
  nghttp2_submit_rst_stream(ng(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
  connection_.schedule();
}

void ClientSessionH2::fail_call(ClientStream& stream, const Error& error, std::uint32_t reset_code) {
  nghttp2_submit_rst_stream(ng(), NGHTTP2_FLAG_NONE, stream.id, reset_code);
  host_.call_failed(*release(stream), error);
}

void ClientSessionH2::header(StreamState* state, const nghttp2_frame&, std::string_view name, std::string_view value) {
  auto* stream = static_cast<ClientStream*>(state);
  if (!stream || !stream->call) return;
  constexpr std::size_t kFieldOverhead = 32;
  stream->head_bytes += name.size() + value.size() + kFieldOverhead;
  if (stream->head_bytes > host_.options.max_header_bytes) {
    return fail_call(*stream, {Code::kResourceExhausted, fmt::format("the response's header fields exceed {} bytes",
                                                                     host_.options.max_header_bytes)},
                     NGHTTP2_CANCEL);
  }
  if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), stream->head.status);
  } else {
    (stream->head_given ? stream->trailers : stream->head.headers).add(name, value);
  }
}

void ClientSessionH2::head_complete(ClientStream& stream) {
  if (stream.head_given) return;
  if (stream.head.status < 200) {  // 1xx: the real one follows
    stream.head = ClientResponseHead();
    return;
  }
  stream.head_given = true;
  stream.call->handler->on_head(std::move(stream.head));
}

void ClientSessionH2::data(StreamState* state, std::int32_t id, Bytes chunk) {
  auto* stream = static_cast<ClientStream*>(state);
  if (!stream || !stream->call) {
    nghttp2_session_consume_connection(ng(), chunk.size());
    return;
  }
  const bool fits = deliver(*stream->call, chunk, host_.options.max_body_bytes);
  nghttp2_session_consume(ng(), id, chunk.size());
  if (!fits && stream->call) fail_call(*stream, body_limit_error(host_.options.max_body_bytes), NGHTTP2_CANCEL);
}

void ClientSessionH2::frame_received(StreamState* state, const nghttp2_frame& frame) {
  auto* stream = static_cast<ClientStream*>(state);
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (stream && stream->call && frame.hd.type == NGHTTP2_HEADERS) head_complete(*stream);
      if (stream && stream->call && ends_stream(frame)) response_complete(*stream);
      return;
    case NGHTTP2_SETTINGS:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) return;
      server_max_streams_ = nghttp2_session_get_remote_settings(ng(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
      return host_.room_changed();
    case NGHTTP2_GOAWAY:
      going_away_ = true;
      return host_.room_changed();
    default: return;
  }
}

void ClientSessionH2::response_complete(ClientStream& stream) {
  // The server has said all it wants to: what is left of the request need not be sent.
  if (nghttp2_session_get_stream_local_close(ng(), stream.id) == 0) {
    nghttp2_submit_rst_stream(ng(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_NO_ERROR);
  }
  const Headers trailers = std::move(stream.trailers);
  stream.trailers.clear();
  host_.call_ended(*release(stream), trailers);
}

void ClientSessionH2::stream_closed(StreamState& state, std::uint32_t error_code) {
  auto& stream = static_cast<ClientStream&>(state);
  if (stream.call) {
    ClientCall* call = release(stream);
    host_.call_failed(*call, {to_code(error_code), fmt::format("the server reset the stream ({})",
                                                              nghttp2_http2_strerror(error_code))});
  }
  recycle(stream);
  host_.room_changed();
}

void ClientSessionH2::end_of_input() {
  connection_.fail({Code::kUnavailable, "the server closed the connection"});
}

void ClientSessionH2::broken(const Error& reason) {
  going_away_ = true;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (!live_[i]->call) continue;
    host_.call_failed(*release(*live_[i]), {Code::kUnavailable, fmt::format("connection to {}: {}", connection_.peer(),
                                                                            reason.message)});
  }
}

Time ClientSessionH2::deadline() const {
  return live_.empty() ? saturating_add(idle_since_, host_.options.idle_timeout) : kNever;
}

void ClientSessionH2::expire(Time) {
  going_away_ = true;
  idle_since_ = kNever;
  nghttp2_session_terminate_session(ng(), NGHTTP2_NO_ERROR);
}

}  // namespace sluice::net::h2
