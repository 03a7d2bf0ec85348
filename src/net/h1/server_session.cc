#include "net/h1/server_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/field_text.h"
#include "net/refusal.h"

namespace sluice::net::h1 {
namespace {

// How much is read while a head is expected: little, so that the body behind it is still in the socket when the
// handler says where it belongs.
constexpr std::size_t kHeadReadBytes = 16 * 1024;
// What a client may send ahead of a response before it is no longer read.
constexpr std::size_t kMaxAheadBytes = 16 * 1024;
// A place of the handler's smaller than this is filled by copying: a read of its own would cost more.
constexpr std::size_t kMinDirectBytes = 16 * 1024;

}  // namespace

ServerSession::ServerSession(Connection& connection, ServerShared& shared)
    : connection_(connection), shared_(shared), idle_since_(connection.now()), exchange_(*this, connection, shared) {
  exchange_.begin(Protocol::kHttp1);
}

MutableBytes ServerSession::read_space(MutableBytes shared) {
  direct_ = false;
  switch (input_) {
    case Input::kHead:
      held_back_ = output_full();
      return held_back_ ? MutableBytes() : shared.first(std::min(shared.size(), kHeadReadBytes));
    case Input::kAnswer:
      return stash_.size() < kMaxAheadBytes ? shared.first(std::min(shared.size(), kHeadReadBytes)) : MutableBytes();
    case Input::kClosed: return {};
    case Input::kBody: break;
  }
  if (exchange_.paused()) return {};
  if (framing_.chunked) return shared;
  MutableBytes target = exchange_.body_target();
  target = target.first(std::min<std::uint64_t>(target.size(), body_left_));
  direct_ = stash_.empty() && target.size() >= std::min<std::uint64_t>(body_left_, kMinDirectBytes);
  return direct_ ? target : shared;
}

bool ServerSession::received(Bytes bytes) {
  if (direct_) {
    body_since_ = connection_.now();
    body_left_ -= bytes.size();
    exchange_.placed(bytes.size());
    if (body_left_ == 0) body_complete();
  } else if (!stash_.empty()) {
    stash_.append(as_text(bytes));
    process_stash();
  } else {
    stash_.append(as_text(bytes.subspan(process(bytes))));
  }
  return input_ == Input::kHead || input_ == Input::kBody;
}

bool ServerSession::process_stash() {
  const std::size_t n = process(as_bytes(stash_));
  stash_.erase(0, n);
  return n > 0;
}

std::size_t ServerSession::process(Bytes bytes) {
  std::size_t consumed = 0;
  while (consumed < bytes.size()) {
    const Bytes rest = bytes.subspan(consumed);
    std::size_t n = 0;
    switch (input_) {
      case Input::kHead:
        held_back_ = output_full();
        n = held_back_ ? 0 : take_head(rest);
        break;
      case Input::kBody: n = framing_.chunked ? take_chunked(rest) : take_body(rest); break;
      case Input::kAnswer: break;
      case Input::kClosed: n = rest.size(); break;
    }
    if (n == 0) break;
    consumed += n;
  }
  return consumed;
}

std::size_t ServerSession::take_head(Bytes bytes) {
  if (head_since_ == kNever) head_since_ = connection_.now();
  const HeadScanner::State state = scanner_.scan(bytes);
  const std::size_t size = state == HeadScanner::State::kComplete ? scanner_.end() : bytes.size();
  if (state == HeadScanner::State::kBad) {
    refuse_input(400, Code::kInvalidArgument, fmt::format("malformed head: {}", scanner_.problem()));
  } else if (size > shared_.limits.max_header_bytes) {
    refuse_input(431, Code::kResourceExhausted,
                 fmt::format("the request's head is longer than allowed, the limit is {} bytes",
                             shared_.limits.max_header_bytes));
  } else if (state == HeadScanner::State::kMore) {
    return 0;
  } else {
    head_complete(bytes.subspan(scanner_.begin(), size - scanner_.begin()), bytes.size() - size);
  }
  return input_ == Input::kClosed ? bytes.size() : size;
}

void ServerSession::head_complete(Bytes head, std::size_t bytes_behind) {
  exchange_.begin(Protocol::kHttp1);
  RequestHead& request = exchange_.mutable_head();
  ParsedRequest parsed;
  if (auto problem = parse_request_head(head, request.target, request.headers, parsed)) {
    return refuse_input(problem->status, Code::kInvalidArgument, std::move(problem->message));
  }
  head_since_ = kNever;
  framing_ = parsed.framing;
  request.method = parsed.method;
  request.content_length = framing_.content_length;
  keep_alive_ = framing_.keep_alive;
  retired_ = false;
  body_left_ = framing_.content_length.value_or(0);
  body_since_ = connection_.now();
  input_ = Input::kBody;
  continue_due_ = framing_.expects_continue && bytes_behind == 0;
  exchange_.open();
  if (!framing_.chunked && body_left_ == 0) body_complete();
}

std::size_t ServerSession::take_body(Bytes bytes) {
  const std::size_t taken = exchange_.deliver(bytes.first(std::min<std::uint64_t>(bytes.size(), body_left_)));
  if (taken > 0) body_since_ = connection_.now();
  continue_due_ = false;
  body_left_ -= taken;
  if (body_left_ == 0) body_complete();
  return taken;
}

std::size_t ServerSession::take_chunked(Bytes bytes) {
  if (exchange_.paused()) return 0;
  continue_due_ = false;
  const ChunkedDecoder::Step step = decoder_.next(bytes);
  if (decoder_.state() == ChunkedDecoder::State::kBad) {
    bad_body(400, Code::kInvalidArgument, fmt::format("malformed body: {}", decoder_.problem()));
    return bytes.size();
  }
  std::size_t taken = 0;
  if (!step.data.empty()) {
    body_since_ = connection_.now();
    taken = exchange_.deliver(step.data);
    decoder_.take(taken);
  }
  if (decoder_.state() == ChunkedDecoder::State::kEnd) body_complete();
  return step.framing + taken;
}

void ServerSession::body_complete() {
  input_ = Input::kAnswer;
  continue_due_ = false;
  exchange_.deliver_end();
}

void ServerSession::bad_body(int status, Code code, std::string message) {
  keep_alive_ = false;
  exchange_.refuse(status, {code, std::move(message)});
  input_ = Input::kClosed;
}

// There is no request that could be answered, so the connection is.
void ServerSession::refuse_input(int status, Code code, std::string message) {
  if (status != 408) ++shared_.counters.protocol_errors;
  keep_alive_ = false;
  input_ = Input::kClosed;
  const Refusal refusal = make_refusal(RequestHead(), status, {code, std::move(message)});
  OutputQueue& out = connection_.output();
  out.append(fmt::format("HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n"
                         "connection: close\r\n\r\n",
                         status, reason_phrase(status), payload_size(refusal.body)));
  for (const Slice& slice : refusal.body) out.append(slice.view());
}

void ServerSession::body_flow_changed() {
  if (!exchange_.paused()) {
    body_since_ = connection_.now();
    connection_.resume_reading();
  }
}

void ServerSession::advance() {
  for (;;) {
    if (!retired_ && exchange_.over()) {
      response_over();
    } else if (stash_.empty() || !process_stash()) {
      break;
    }
  }
  if (continue_due_ && input_ == Input::kBody && !exchange_.paused()) {
    continue_due_ = false;
    connection_.output().append("HTTP/1.1 100 Continue\r\n\r\n");
  }
}

void ServerSession::response_over() {
  exchange_.retire();
  retired_ = true;
  if (!keep_alive_ || exchange_.dead() || input_ != Input::kAnswer) {
    input_ = Input::kClosed;
  } else {
    next_request();
  }
}

void ServerSession::next_request() {
  input_ = shared_.draining && stash_.empty() ? Input::kClosed : Input::kHead;
  scanner_.reset();
  decoder_.reset();
  idle_since_ = connection_.now();
  connection_.resume_reading();
}

bool ServerSession::notify_writable() {
  if (held_back_ && !output_full()) {
    held_back_ = false;
    connection_.resume_reading();
    return true;
  }
  return exchange_.notify_writable();
}

void ServerSession::end_of_input() {
  exchange_.abort({Code::kCancelled, "the client closed the connection before the response was finished"});
  input_ = Input::kClosed;
}

void ServerSession::broken(const Error& reason) {
  exchange_.abort(reason);
  input_ = Input::kClosed;
}

void ServerSession::drain() {
  if (input_ == Input::kHead && stash_.empty()) input_ = Input::kClosed;
  connection_.schedule();
}

Time ServerSession::deadline() const {
  const ServerLimits& limits = shared_.limits;
  if (input_ == Input::kHead) {
    if (head_since_ != kNever) return saturating_add(head_since_, limits.header_timeout);
    return output_full() ? kNever : saturating_add(idle_since_, limits.idle_timeout);
  }
  if (input_ == Input::kBody && !exchange_.over() && !exchange_.paused()) {
    return saturating_add(body_since_, limits.body_stall_timeout);
  }
  return kNever;
}

void ServerSession::expire(Time) {
  if (input_ == Input::kHead && head_since_ == kNever) {
    input_ = Input::kClosed;
    return;
  }
  ++connection_.context().timeouts;
  if (input_ == Input::kHead) {
    refuse_input(408, Code::kDeadlineExceeded, "the request's head did not arrive within the header time-out");
  } else {
    bad_body(408, Code::kDeadlineExceeded, "no byte of the request's body arrived within the body stall time-out");
  }
}

}  // namespace sluice::net::h1
