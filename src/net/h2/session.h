// HTTP/2 (RFC 9113) over nghttp2: what the server's and the client's sessions share. The callbacks of nghttp2
// become virtual functions; bodies go out by reference (NO_COPY frames into the OutputQueue); flow control is
// told of bytes when they have been used (no automatic window updates).
//
// nghttp2 may not be entered from its own callbacks with mem_recv or mem_send; submitting is allowed. Sessions
// therefore only submit, and Connection drives received() and produce().
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "net/transport/body_queue.h"
#include "net/transport/connection.h"
#include "net/transport/stall_list.h"

namespace sluice::net::h2 {

// What every stream has: the body that waits to be sent, and its places among those who wait.
struct StreamState {
  std::int32_t id = 0;
  BodyQueue body;
  Trailers trailers;      // go out after the body
  bool finished = false;  // nothing will be added to the body
  bool deferred = false;  // nghttp2 waits for nghttp2_session_resume_data()
  StallList<StreamState>::Node sending{*this};    // has bytes to send
  StallList<StreamState>::Node receiving{*this};  // the peer's body is unfinished

  void reset_state();
};

struct Windows {
  std::uint32_t stream_bytes;
  std::uint32_t connection_bytes;
};

class SessionBase : public Session {
 public:
  MutableBytes read_space(MutableBytes shared) override { return shared; }
  bool received(Bytes bytes) override;
  void produce(OutputQueue& out) override;
  bool done() const override;

 protected:
  enum class Side : std::uint8_t { kServer, kClient };
  SessionBase(Connection& connection, Side side);

  // nghttp2's callbacks. `stream` is null for what belongs to none that is known.
  virtual void begin_headers(const nghttp2_frame& frame) = 0;
  virtual void header(StreamState* stream, const nghttp2_frame& frame, std::string_view name,
                      std::string_view value) = 0;
  virtual void data(StreamState* stream, std::int32_t id, Bytes chunk) = 0;
  virtual void frame_received(StreamState* stream, const nghttp2_frame& frame) = 0;
  virtual void invalid_frame_received(const nghttp2_frame& frame) = 0;
  virtual void frame_sent(const nghttp2_frame& frame) = 0;
  virtual void stream_closed(StreamState& stream, std::uint32_t error_code) = 0;

  nghttp2_session* ng() const { return session_.get(); }
  StreamState* find(std::int32_t id) const;
  void submit_settings(const std::vector<nghttp2_settings_entry>& settings, const Windows& windows);

  // The fields of the next head; the texts must live until the stream closes.
  void clear_fields() { fields_.clear(); }
  void add_field(std::string_view name, std::string_view value);
  void add_fields(const std::vector<std::pair<std::string, std::string>>& fields);
  const std::vector<nghttp2_nv>& fields() const { return fields_; }
  // A provider that sends stream.body, then stream.trailers.
  nghttp2_data_provider provider(StreamState& stream);
  void push_body(StreamState& stream, Payload piece);
  void finish_body(StreamState& stream);

  Connection& connection_;
  StallList<StreamState> sending_;
  StallList<StreamState> receiving_;
  Time data_sent_{};  // when body bytes last left nghttp2

 private:
  struct Callbacks;
  friend struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  std::unique_ptr<nghttp2_session, Delete> session_;
  std::vector<nghttp2_nv> fields_;
  std::vector<nghttp2_nv> trailer_fields_;
};

}  // namespace sluice::net::h2
