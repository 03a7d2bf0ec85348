#include "net/server_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/field_text.h"
#include "net/refusal.h"

namespace sluice::net {
namespace {

void make_field_values(std::vector<std::pair<std::string, std::string>>& fields) {
  for (auto& [name, value] : fields) make_field_value(value);
}

}  // namespace

void ServerExchange::begin(Protocol protocol) {
  head_.method = Method::kOther;
  head_.protocol = protocol;
  head_.target.clear();
  head_.headers.clear();
  head_.content_length.reset();
  body_bytes_ = 0;
  phase_ = Phase::kDead;
  request_ended_ = paused_ = awaits_room_ = false;
}

void ServerExchange::admit() {
  phase_ = Phase::kAwaiting;
  head_.received = connection_.now();
  ++shared_.counters.requests;
  ++shared_.counters.requests_open;
}

void ServerExchange::open_refused(int status, const Error& reason) {
  admit();
  refuse(status, reason);
}

void ServerExchange::open() {
  admit();
  if (head_.content_length.value_or(0) > shared_.limits.max_body_bytes) {
    count_body(*head_.content_length);
    return;
  }
  handler_ = shared_.service.open(*this);
  SLUICE_CHECK(handler_ || over(), "a service that returns no handler has responded");
}

void ServerExchange::end(Phase phase) {
  phase_ = phase;
  --shared_.counters.requests_open;
  connection_.schedule();
  ended();
}

void ServerExchange::respond(ResponseHead head, Payload body, Trailers trailers) {
  SLUICE_CHECK(phase_ == Phase::kAwaiting, "respond() is the only call that begins and ends a response");
  make_field_values(head.headers);
  make_field_values(trailers);
  end(Phase::kFinished);
  send_response(std::move(head), std::move(body), std::move(trailers));
}

void ServerExchange::start(ResponseHead head) {
  SLUICE_CHECK(phase_ == Phase::kAwaiting, "start() comes first and once");
  make_field_values(head.headers);
  phase_ = Phase::kStreaming;
  send_head(std::move(head));
  connection_.schedule();
}

void ServerExchange::write(Payload piece) {
  SLUICE_CHECK(phase_ == Phase::kStreaming, "write() comes between start() and finish()");
  if (!omits_body()) send_piece(std::move(piece));
  awaits_room_ = !writable();
  connection_.schedule();
}

void ServerExchange::finish(Trailers trailers) {
  SLUICE_CHECK(phase_ == Phase::kStreaming, "finish() comes after start() and once");
  make_field_values(trailers);
  end(Phase::kFinished);
  send_end(std::move(trailers));
}

void ServerExchange::reset() {
  SLUICE_CHECK(!over(), "reset() of an exchange that is over");
  end(Phase::kDead);
  send_reset();
}

void ServerExchange::pause_body() {
  if (over() || std::exchange(paused_, true)) return;
  body_flow_changed();
}

void ServerExchange::resume_body() {
  if (over() || !std::exchange(paused_, false)) return;
  body_flow_changed();
  connection_.schedule();
}

bool ServerExchange::count_body(std::size_t bytes) {
  body_bytes_ += bytes;
  if (body_bytes_ <= shared_.limits.max_body_bytes) return true;
  const std::string size = head_.content_length ? std::to_string(*head_.content_length) : "too many";
  refuse(413, {Code::kResourceExhausted, fmt::format("the request's body has {} bytes, the limit is {}", size,
                                                     shared_.limits.max_body_bytes)});
  return false;
}

std::size_t ServerExchange::deliver(Bytes bytes) {
  if (over() || !count_body(bytes.size())) return bytes.size();
  std::size_t taken = 0;
  while (taken < bytes.size() && !over() && !paused_) {
    const Bytes rest = bytes.subspan(taken);
    const MutableBytes target = handler_->body_target();
    if (target.empty()) {
      taken = bytes.size();
      handler_->on_data(rest);
    } else {
      const std::size_t n = std::min(target.size(), rest.size());
      std::memcpy(target.data(), rest.data(), n);
      taken += n;
      handler_->on_placed(n);
    }
  }
  if (over()) return bytes.size();
  body_bytes_ -= bytes.size() - taken;
  return taken;
}

MutableBytes ServerExchange::body_target() {
  if (over() || paused_) return {};
  return handler_->body_target();
}

void ServerExchange::placed(std::size_t bytes) {
  if (!over() && count_body(bytes)) handler_->on_placed(bytes);
}

void ServerExchange::deliver_end() {
  request_ended_ = true;
  if (!over()) handler_->on_end();
}

void ServerExchange::abort(const Error& reason) {
  if (over()) return;
  end(Phase::kDead);
  if (handler_) handler_->on_abort(reason);
}

void ServerExchange::refuse(int status, const Error& reason) {
  if (over()) return;
  const bool answer = phase_ == Phase::kAwaiting;
  end(answer ? Phase::kFinished : Phase::kDead);
  if (handler_) handler_->on_abort(reason);
  if (!answer) return send_reset();
  Refusal refusal = make_refusal(head_, status, reason);
  send_response(std::move(refusal.head), std::move(refusal.body), std::move(refusal.trailers));
}

bool ServerExchange::notify_writable() {
  if (!awaits_room_ || over() || !writable()) return false;
  awaits_room_ = false;
  handler_->on_writable();
  return true;
}

void ServerExchange::retire() {
  if (over()) handler_.reset();
}

}  // namespace sluice::net
