#include "net/h1/client_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/field_text.h"

namespace sluice::net::h1 {
namespace {

constexpr std::size_t kHeadReadBytes = 16 * 1024;
constexpr std::size_t kMinDirectBytes = 16 * 1024;

}  // namespace

void ClientSessionH1::begin(ClientCall& call) {
  call_ = &call;
  call.session = this;
  method_ = call.request.method;
  input_ = Input::kHead;
  room_due_ = true;
  scanner_.reset();
  std::string head = fmt::format("{} {} HTTP/1.1\r\nhost: {}\r\n", method_name(method_), call.request.target,
                                 io::to_string(host_.options.endpoint));
  for (auto& [name, value] : call.request.headers) {
    make_field_value(value);
    if (name != "host") head.append(name).append(": ").append(value).append("\r\n");
  }
  const std::size_t size = payload_size(call.request.body);
  const bool has_body = size > 0 || method_ == Method::kPost || method_ == Method::kPut || method_ == Method::kPatch;
  if (has_body) fmt::format_to(std::back_inserter(head), "content-length: {}\r\n", size);
  head.append("\r\n");
  OutputQueue& out = connection_.output();
  out.append(head);
  for (Slice& slice : call.request.body) out.append(std::move(slice));
  connection_.schedule();
}

void ClientSessionH1::cancel(ClientCall&) {
  call_ = nullptr;
  input_ = Input::kClosed;
  connection_.fail({Code::kCancelled, "the call was cancelled"});
}

MutableBytes ClientSessionH1::read_space(MutableBytes shared) {
  direct_ = false;
  if (input_ == Input::kClosed) return {};
  if (input_ != Input::kBody) return shared.first(std::min(shared.size(), kHeadReadBytes));
  if (!framing_.content_length) return shared;
  MutableBytes target = call_->handler->body_target();
  target = target.first(std::min<std::uint64_t>(target.size(), body_left_));
  direct_ = target.size() >= std::min<std::uint64_t>(body_left_, kMinDirectBytes);
  return direct_ ? target : shared;
}

bool ClientSessionH1::received(Bytes bytes) {
  if (direct_) {
    body_left_ -= bytes.size();
    if (!deliver_placed(*call_, bytes.size(), host_.options.max_body_bytes)) {
      fail_call(body_limit_error(host_.options.max_body_bytes));
    } else if (call_ && body_left_ == 0) {
      response_complete();
    }
  } else if (!stash_.empty()) {
    stash_.append(as_text(bytes));
    const std::size_t used = process(as_bytes(stash_));
    stash_.erase(0, used);
  } else {
    stash_.append(as_text(bytes.subspan(process(bytes))));
  }
  return input_ == Input::kHead || input_ == Input::kBody;
}

std::size_t ClientSessionH1::process(Bytes bytes) {
  std::size_t consumed = 0;
  while (consumed < bytes.size()) {
    const Bytes rest = bytes.subspan(consumed);
    std::size_t n = 0;
    switch (input_) {
      case Input::kIdle:  // nobody asked: the two sides disagree about where a message ends
        input_ = Input::kClosed;
        host_.room_changed();
        break;
      case Input::kHead: n = take_head(rest); break;
      case Input::kBody: n = framing_.chunked ? take_chunked(rest) : take_body(rest); break;
      case Input::kClosed: n = rest.size(); break;
    }
    if (n == 0 && input_ != Input::kClosed) break;
    consumed += n;
  }
  return consumed;
}

std::size_t ClientSessionH1::take_head(Bytes bytes) {
  const HeadScanner::State state = scanner_.scan(bytes);
  const std::size_t size = state == HeadScanner::State::kComplete ? scanner_.end() : bytes.size();
  if (state == HeadScanner::State::kBad) {
    fail_call({Code::kInternal, fmt::format("malformed response: {}", scanner_.problem())});
  } else if (size > host_.options.max_header_bytes) {
    fail_call({Code::kResourceExhausted,
               fmt::format("the response's head exceeds the limit of {} bytes", host_.options.max_header_bytes)});
  } else if (state == HeadScanner::State::kMore) {
    return 0;
  } else {
    head_complete(bytes.subspan(scanner_.begin(), size - scanner_.begin()));
    scanner_.reset();
  }
  return size;
}

void ClientSessionH1::head_complete(Bytes head) {
  ClientResponseHead response;
  ParsedResponse parsed;
  if (auto problem = parse_response_head(head, response.headers, parsed)) {
    return fail_call({Code::kInternal, fmt::format("malformed response: {}", problem->message)});
  }
  if (parsed.status < 200) return;  // 1xx: the real one follows
  framing_ = parsed.framing;
  if (method_ == Method::kHead || !status_has_body(parsed.status)) {
    framing_.chunked = false;
    framing_.content_length = 0;
  }
  body_left_ = framing_.content_length.value_or(0);
  decoder_.reset();
  input_ = Input::kBody;
  response.status = parsed.status;
  call_->handler->on_head(std::move(response));
  if (call_ && framing_.content_length && body_left_ == 0) response_complete();
}

std::size_t ClientSessionH1::take_body(Bytes bytes) {
  const bool bounded = framing_.content_length.has_value();
  const std::size_t n = bounded ? std::min<std::uint64_t>(bytes.size(), body_left_) : bytes.size();
  if (!deliver(*call_, bytes.first(n), host_.options.max_body_bytes)) {
    fail_call(body_limit_error(host_.options.max_body_bytes));
    return n;
  }
  if (bounded) body_left_ -= n;
  if (call_ && bounded && body_left_ == 0) response_complete();
  return n;
}

std::size_t ClientSessionH1::take_chunked(Bytes bytes) {
  const ChunkedDecoder::Step step = decoder_.next(bytes);
  if (decoder_.state() == ChunkedDecoder::State::kBad) {
    fail_call({Code::kInternal, fmt::format("malformed response body: {}", decoder_.problem())});
    return bytes.size();
  }
  if (!step.data.empty()) {
    if (!deliver(*call_, step.data, host_.options.max_body_bytes)) {
      fail_call(body_limit_error(host_.options.max_body_bytes));
      return bytes.size();
    }
    decoder_.take(step.data.size());
  }
  if (call_ && decoder_.state() == ChunkedDecoder::State::kEnd) response_complete();
  return step.framing + step.data.size();
}

void ClientSessionH1::response_complete() {
  // A server that answers before it has the whole request will not read the rest.
  const bool reusable = framing_.keep_alive && !until_close() && connection_.output().empty();
  input_ = reusable ? Input::kIdle : Input::kClosed;
  if (!reusable) connection_.output().clear();
  idle_since_ = connection_.now();
  Headers trailers;
  if (framing_.chunked) decoder_.trailers(trailers);
  host_.call_ended(*std::exchange(call_, nullptr), trailers);
  host_.room_changed();
}

void ClientSessionH1::fail_call(Error error) {
  input_ = Input::kClosed;
  ClientCall* call = std::exchange(call_, nullptr);
  if (call) host_.call_failed(*call, error);
  connection_.fail(std::move(error));
}

bool ClientSessionH1::notify_writable() {
  if (room_due_ && connection_.output().empty()) {
    room_due_ = false;
    host_.room_changed();
  }
  return false;
}

void ClientSessionH1::end_of_input() {
  if (call_ && input_ == Input::kBody && until_close()) return response_complete();
  fail_call({Code::kUnavailable, "the server closed the connection"});
}

void ClientSessionH1::broken(const Error& reason) {
  input_ = Input::kClosed;
  ClientCall* call = std::exchange(call_, nullptr);
  if (!call) return;
  host_.call_failed(*call,
                    {Code::kUnavailable, fmt::format("connection to {}: {}", connection_.peer(), reason.message)});
}

Time ClientSessionH1::deadline() const {
  return input_ == Input::kIdle ? saturating_add(idle_since_, host_.options.idle_timeout) : kNever;
}

void ClientSessionH1::expire(Time) { input_ = Input::kClosed; }

}  // namespace sluice::net::h1
