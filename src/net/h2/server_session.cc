#include "net/h2/server_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "net/field_text.h"
#include "net/h2/server_stream.h"

namespace sluice::net::h2 {
namespace {

// A client may cancel, ping and so on as often as this before it is sent away (ENHANCE_YOUR_CALM).
constexpr double kResetBurst = 1000;
constexpr double kResetsPerSecond = 100;
constexpr double kControlBurst = 10000;
constexpr double kControlPerSecond = 1000;

constexpr Duration kDrainGrace = std::chrono::seconds(1);
constexpr std::array<std::uint8_t, 8> kDrainPing = {'d', 'r', 'a', 'i', 'n', 0, 0, 0};

// Streams kept for reuse, and the size of the head above which one is not worth keeping.
constexpr std::size_t kMaxIdleStreams = 128;
constexpr std::size_t kMaxIdleHeadBytes = 4096;

bool ends_stream(const nghttp2_frame& frame) { return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0; }

}  // namespace

ServerSession::ServerSession(Connection& connection, ServerShared& shared)
    : SessionBase(connection, Side::kServer),
      shared_(shared),
      resets_(kResetBurst, kResetsPerSecond),
      control_frames_(kControlBurst, kControlPerSecond),
      idle_since_(connection.now()) {
  const ServerLimits& limits = shared.limits;
  submit_settings({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams},
                   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window_bytes},
                   {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.max_header_bytes)},
                   {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}},
                  {limits.stream_window_bytes, limits.connection_window_bytes});
  if (shared.draining) drain();
}

ServerSession::~ServerSession() = default;

ServerSession::ServerStream& ServerSession::acquire(std::int32_t id) {
  if (idle_.empty()) {
    live_.push_back(std::make_unique<ServerStream>(*this, connection_, shared_));
  } else {
    live_.push_back(std::move(idle_.back()));
    idle_.pop_back();
  }
  ServerStream& stream = *live_.back();
  stream.begin(id);
  stream.index = live_.size() - 1;
  return stream;
}

void ServerSession::recycle(ServerStream& stream) {
  if (stream.writes) std::erase(writers_, &stream);
  if (stream.resumed) std::erase(resumed_, &stream);
  const std::size_t index = stream.index;
  std::swap(live_[index], live_.back());
  live_[index]->index = index;
  std::unique_ptr<ServerStream> gone = std::move(live_.back());
  live_.pop_back();
  gone->reset_state();
  if (live_.empty()) idle_since_ = connection_.now();
  if (idle_.size() < kMaxIdleStreams && gone->head_bytes <= kMaxIdleHeadBytes) idle_.push_back(std::move(gone));
}

bool ServerSession::received(Bytes bytes) {
  const bool good = SessionBase::received(bytes);
  if (!good) ++shared_.counters.protocol_errors;
  return good;
}

void ServerSession::begin_headers(const nghttp2_frame& frame) {
  head_since_ = connection_.now();
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) return;
  ServerStream& stream = acquire(frame.hd.stream_id);
  nghttp2_session_set_stream_user_data(ng(), frame.hd.stream_id, static_cast<StreamState*>(&stream));
}

void ServerSession::header(StreamState* state, const nghttp2_frame&, std::string_view name, std::string_view value) {
  auto* stream = static_cast<ServerStream*>(state);
  if (!stream || stream->head_known) return;  // trailers of a request have no reader
  constexpr std::size_t kFieldOverhead = 32;
  stream->head_bytes += name.size() + value.size() + kFieldOverhead;
  if (stream->head_bytes > shared_.limits.max_header_bytes) return;
  RequestHead& head = stream->mutable_head();
  if (name.front() == ':') {
    if (name == ":method") head.method = parse_method(value);
    if (name == ":path") head.target.assign(value);
    if (name == ":authority") head.headers.add("host", value);
    return;
  }
  if (name == "content-length") head.content_length = parse_content_length(value);
  if (name == "host" && head.headers.get("host")) return;
  head.headers.add(name, value);
}

void ServerSession::head_complete(ServerStream& stream, bool trailers) {
  if (trailers) return;
  stream.head_known = true;
  if (stream.head_bytes > shared_.limits.max_header_bytes) {
    stream.open_refused(431, {Code::kResourceExhausted,
                              fmt::format("the request's header fields have {} bytes, the limit is {}",
                                          stream.head_bytes, shared_.limits.max_header_bytes)});
    return;
  }
  stream.open();
}

void ServerSession::request_complete(ServerStream& stream) {
  stream.receiving.unlink();
  if (!stream.held.empty() && !stream.over()) {
    stream.end_held = true;
  } else {
    stream.deliver_end();
  }
}

void ServerSession::data(StreamState* state, std::int32_t id, Bytes chunk) {
  auto* stream = static_cast<ServerStream*>(state);
  if (!stream || stream->over()) {
    nghttp2_session_consume_connection(ng(), chunk.size());
    return;
  }
  receiving_.touch(stream->receiving, connection_.now());
  const std::size_t taken = stream->held.empty() && !stream->paused() ? stream->deliver(chunk) : 0;
  if (taken < chunk.size()) stream->held.append(as_text(chunk.subspan(taken)));
  if (stream->paused()) stream->receiving.unlink();
  if (taken > 0) nghttp2_session_consume(ng(), id, taken);
}

void ServerSession::deliver_held(ServerStream& stream) {
  stream.resumed = false;
  if (stream.paused()) return;
  const std::string held = std::exchange(stream.held, {});
  const std::size_t taken = stream.deliver(as_bytes(held));
  if (taken < held.size()) stream.held.assign(held, taken);
  if (!stream.closed) nghttp2_session_consume(ng(), stream.id, taken);
  if (stream.end_held && stream.held.empty()) {
    stream.end_held = false;
    stream.deliver_end();
  }
}

void ServerSession::frame_received(StreamState* state, const nghttp2_frame& frame) {
  head_since_ = kNever;
  auto* stream = static_cast<ServerStream*>(state);
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (!stream) return;
      if (frame.hd.type == NGHTTP2_HEADERS) head_complete(*stream, frame.headers.cat != NGHTTP2_HCAT_REQUEST);
      if (ends_stream(frame)) {
        request_complete(*stream);
      } else if (frame.hd.type == NGHTTP2_HEADERS && !stream->over() && !stream->paused()) {
        receiving_.touch(stream->receiving, connection_.now());
      } else if (frame.hd.type == NGHTTP2_DATA && frame.hd.length == 0) {
        control_frame();
      }
      return;
    case NGHTTP2_RST_STREAM:
      if (!resets_.take(connection_.now())) terminate(NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) == 0) return control_frame();
      if (std::memcmp(frame.ping.opaque_data, kDrainPing.data(), kDrainPing.size()) == 0) finish_drain();
      return;
    case NGHTTP2_SETTINGS: return control_frame();
    default: return;
  }
}

void ServerSession::control_frame() {
  if (!control_frames_.take(connection_.now())) terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

// A frame that makes the server reset a stream costs the client as little as a reset of its own.
void ServerSession::invalid_frame_received(const nghttp2_frame&) {
  head_since_ = kNever;
  ++shared_.counters.protocol_errors;
  if (!resets_.take(connection_.now())) terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

void ServerSession::frame_sent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
    ++shared_.counters.protocol_errors;
  }
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return;
  if (!ends_stream(frame)) return;
  const auto* stream = static_cast<ServerStream*>(find(frame.hd.stream_id));
  // An early answer is complete: the client need not send the rest (RFC 9113, 8.1).
  if (stream && !stream->request_ended() && !stream->end_held) {
    nghttp2_submit_rst_stream(ng(), NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR);
  }
}

void ServerSession::stream_closed(StreamState& state, std::uint32_t error_code) {
  auto& stream = static_cast<ServerStream&>(state);
  stream.closed = true;
  stream.sending.unlink();
  stream.receiving.unlink();
  if (!stream.held.empty()) nghttp2_session_consume_connection(ng(), stream.held.size());
  stream.held.clear();
  if (!stream.over()) {
    stream.abort({Code::kCancelled, fmt::format("the stream was reset before the response was finished ({})",
                                                nghttp2_http2_strerror(error_code))});
  }
  if (stream.retired) recycle(stream);
}

void ServerSession::advance() {
  for (std::size_t i = 0; i < resumed_.size(); ++i) deliver_held(*resumed_[i]);
  resumed_.clear();
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    ServerStream& stream = *ended_[i];
    stream.retire();
    stream.retired = true;
    if (stream.closed) recycle(stream);
  }
  ended_.clear();
}

bool ServerSession::notify_writable() {
  bool told = false;
  for (std::size_t i = 0; i < writers_.size();) {
    ServerStream& stream = *writers_[i];
    if (stream.over() || !stream.awaits_room()) {
      stream.writes = false;
      writers_[i] = writers_.back();
      writers_.pop_back();
      continue;
    }
    told |= stream.notify_writable();
    ++i;
  }
  return told;
}

void ServerSession::end_of_input() {
  connection_.fail({Code::kCancelled, "the client closed the connection before the response was finished"});
}

void ServerSession::broken(const Error& reason) {
  for (std::size_t i = 0; i < live_.size(); ++i) live_[i]->abort(reason);
}

void ServerSession::terminate(std::uint32_t error_code) { nghttp2_session_terminate_session(ng(), error_code); }

void ServerSession::drain() {
  if (drain_deadline_ != kNever) return;
  nghttp2_submit_shutdown_notice(ng());
  nghttp2_submit_ping(ng(), NGHTTP2_FLAG_NONE, kDrainPing.data());
  drain_deadline_ = saturating_add(connection_.now(), kDrainGrace);
  connection_.schedule();
}

void ServerSession::finish_drain() {
  if (drain_deadline_ == kNever) return;
  drain_deadline_ = kNever;
  nghttp2_submit_goaway(ng(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(ng()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

Time ServerSession::deadline() const {
  const ServerLimits& limits = shared_.limits;
  Time at = std::min(drain_deadline_, saturating_add(head_since_, limits.header_timeout));
  if (live_.empty()) at = std::min(at, saturating_add(idle_since_, limits.idle_timeout));
  at = std::min(at, receiving_.deadline(limits.body_stall_timeout));
  return std::min(at, sending_.deadline(limits.write_stall_timeout));
}

void ServerSession::expire(Time now) {
  const ServerLimits& limits = shared_.limits;
  if (now >= drain_deadline_) finish_drain();
  if (now >= saturating_add(head_since_, limits.header_timeout)) {
    head_since_ = kNever;
    ++connection_.context().timeouts;
    terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  if (live_.empty() && now >= saturating_add(idle_since_, limits.idle_timeout)) {
    idle_since_ = kNever;
    terminate(NGHTTP2_NO_ERROR);
  }
  while (now >= receiving_.deadline(limits.body_stall_timeout)) {
    auto& stream = static_cast<ServerStream&>(*receiving_.oldest());
    stream.receiving.unlink();
    ++connection_.context().timeouts;
    stream.refuse(408, {Code::kDeadlineExceeded,
                        "no byte of the request's body arrived within the body stall time-out"});
  }
  while (now >= sending_.deadline(limits.write_stall_timeout)) expire_sender(now);
}

// A stream that waits for its turn on a connection that moves is not stalled; one without a window is.
void ServerSession::expire_sender(Time now) {
  auto& stream = static_cast<ServerStream&>(*sending_.oldest());
  const bool has_window = nghttp2_session_get_stream_remote_window_size(ng(), stream.id) > 0;
  if (has_window && now < saturating_add(data_sent_, shared_.limits.write_stall_timeout)) {
    sending_.touch(stream.sending, now);
    return;
  }
  stream.sending.unlink();
  ++connection_.context().timeouts;
  stream.abort({Code::kCancelled, "the client took no byte of the response within the write stall time-out"});
  nghttp2_submit_rst_stream(ng(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
}

}  // namespace sluice::net::h2
