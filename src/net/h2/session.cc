#include "net/h2/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice::net::h2 {
namespace {

nghttp2_nv make_field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

std::string_view text(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

void StreamState::reset_state() {
  id = 0;
  body.clear();
  trailers.clear();
  finished = deferred = false;
  sending.unlink();
  receiving.unlink();
}

struct SessionBase::Callbacks {
  static SessionBase& self(void* user) { return *static_cast<SessionBase*>(user); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    self(user).begin_headers(*frame);
    return 0;
  }
  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    SessionBase& session = self(user);
    session.header(session.find(frame->hd.stream_id), *frame, text(name, name_size), text(value, value_size));
    return 0;
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                  void* user) {
    SessionBase& session = self(user);
    session.data(session.find(id), id, as_bytes(text(bytes, size)));
    return 0;
  }
  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    SessionBase& session = self(user);
    session.frame_received(frame->hd.stream_id == 0 ? nullptr : session.find(frame->hd.stream_id), *frame);
    return 0;
  }
  static int invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    self(user).invalid_frame_received(*frame);
    return 0;
  }
  static int frame_sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    self(user).frame_sent(*frame);
    return 0;
  }
  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t error_code, void* user) {
    SessionBase& session = self(user);
    if (StreamState* stream = session.find(id)) {
      nghttp2_session_set_stream_user_data(session.ng(), id, nullptr);
      session.stream_closed(*stream, error_code);
    }
    return 0;
  }

  static ssize_t read_body(nghttp2_session* ng, std::int32_t id, std::uint8_t*, std::size_t length,
                           std::uint32_t* flags, nghttp2_data_source* source, void* user) {
    auto& stream = *static_cast<StreamState*>(source->ptr);
    const std::size_t n = std::min(length, stream.body.size());
    if (n == 0 && !stream.finished) {
      stream.deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < stream.body.size() || !stream.finished) return static_cast<ssize_t>(n);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      auto& fields = self(user).trailer_fields_;
      fields.clear();
      for (const auto& [name, value] : stream.trailers) fields.push_back(make_field(name, value));
      nghttp2_submit_trailer(ng, id, fields.data(), fields.size());
    }
    return static_cast<ssize_t>(n);
  }

  static int send_body(nghttp2_session*, nghttp2_frame*, const std::uint8_t* frame_head, std::size_t length,
                       nghttp2_data_source* source, void* user) {
    constexpr std::size_t kFrameHeadBytes = 9;
    SessionBase& session = self(user);
    auto& stream = *static_cast<StreamState*>(source->ptr);
    OutputQueue& out = session.connection_.output();
    if (out.size() >= kOutputTarget) return NGHTTP2_ERR_WOULDBLOCK;
    out.append(text(frame_head, kFrameHeadBytes));
    stream.body.move_to(out, length);
    session.data_sent_ = session.connection_.now();
    if (stream.body.empty()) {
      stream.sending.unlink();
    } else {
      session.sending_.touch(stream.sending, session.data_sent_);
    }
    return 0;
  }

  static const nghttp2_session_callbacks* table() {
    static nghttp2_session_callbacks* const instance = [] {
      nghttp2_session_callbacks* made = nullptr;
      SLUICE_CHECK(nghttp2_session_callbacks_new(&made) == 0, "no memory for nghttp2's callbacks");
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(made, header);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, data);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, frame_received);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, invalid_frame);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, frame_sent);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, stream_closed);
      nghttp2_session_callbacks_set_send_data_callback(made, send_body);
      return made;
    }();
    return instance;
  }

  static const nghttp2_option* options() {
    static nghttp2_option* const instance = [] {
      nghttp2_option* made = nullptr;
      SLUICE_CHECK(nghttp2_option_new(&made) == 0, "no memory for nghttp2's options");
      nghttp2_option_set_no_auto_window_update(made, 1);
      nghttp2_option_set_no_closed_streams(made, 1);
      nghttp2_option_set_max_outbound_ack(made, 1000);
      nghttp2_option_set_max_settings(made, 32);
      nghttp2_option_set_max_continuations(made, 8);
      // nghttp2 would count resets by the real clock; ServerSession counts them by the loop's.
      nghttp2_option_set_stream_reset_rate_limit(made, std::numeric_limits<std::uint64_t>::max(), 1);
      return made;
    }();
    return instance;
  }
};

SessionBase::SessionBase(Connection& connection, Side side) : connection_(connection) {
  nghttp2_session* made = nullptr;
  const auto make = side == Side::kServer ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  SLUICE_CHECK(make(&made, Callbacks::table(), this, Callbacks::options()) == 0, "no memory for an HTTP/2 session");
  session_.reset(made);
}

bool SessionBase::received(Bytes bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t used = nghttp2_session_mem_recv(ng(), data, bytes.size());
  if (used < 0) {
    connection_.fail({Code::kCancelled, fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(used)))});
    return false;
  }
  return true;
}

void SessionBase::produce(OutputQueue& out) {
  while (out.size() < kOutputTarget) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(ng(), &bytes);
    if (size < 0) {
      connection_.fail({Code::kInternal, fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(size)))});
    }
    if (size <= 0) return;
    out.append(text(bytes, static_cast<std::size_t>(size)));
  }
}

bool SessionBase::done() const { return !nghttp2_session_want_read(ng()) && !nghttp2_session_want_write(ng()); }

StreamState* SessionBase::find(std::int32_t id) const {
  return static_cast<StreamState*>(nghttp2_session_get_stream_user_data(ng(), id));
}

void SessionBase::submit_settings(const std::vector<nghttp2_settings_entry>& settings, const Windows& windows) {
  nghttp2_submit_settings(ng(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  const auto window = static_cast<std::int32_t>(windows.connection_bytes);
  nghttp2_session_set_local_window_size(ng(), NGHTTP2_FLAG_NONE, 0, window);
}

void SessionBase::add_field(std::string_view name, std::string_view value) {
  fields_.push_back(make_field(name, value));
}

void SessionBase::add_fields(const std::vector<std::pair<std::string, std::string>>& fields) {
  for (const auto& [name, value] : fields) add_field(name, value);
}

nghttp2_data_provider SessionBase::provider(StreamState& stream) {
  return {.source = {.ptr = &stream}, .read_callback = Callbacks::read_body};
}

void SessionBase::push_body(StreamState& stream, Payload piece) {
  stream.body.push(std::move(piece));
  if (stream.body.empty()) return;
  if (!stream.sending.linked()) sending_.touch(stream.sending, connection_.now());
  if (std::exchange(stream.deferred, false)) nghttp2_session_resume_data(ng(), stream.id);
}

void SessionBase::finish_body(StreamState& stream) {
  stream.finished = true;
  if (std::exchange(stream.deferred, false)) nghttp2_session_resume_data(ng(), stream.id);
}

}  // namespace sluice::net::h2
