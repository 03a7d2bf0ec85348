#include "raw_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxSipBytes = 2000;
constexpr Duration kMaxSipPause = milliseconds(1);
constexpr Duration kMaxStay = milliseconds(20);
// After fewer the server cannot tell in which protocol it should complain.
constexpr std::size_t kProtocolKnownBytes = 8;
constexpr std::string_view kLengthField = "\r\ncontent-length:";  // not inference-header-content-length

}  // namespace

RawClient::RawClient(io::Loop& loop, Options options, Done done)
    : loop_(loop),
      options_(std::move(options)),
      done_(std::move(done)),
      random_(options_.seed),
      to_send_(options_.request.size()),
      next_sip_(loop.timers(), [this] { if (stream_) stream_->want_read(); }),
      leaving_(loop.timers(), [this] { finish(fail(Code::kCancelled, "the client left")); }),
      alive_(std::make_shared<bool>(true)) {
  if (options_.leaves) {
    if (random_.chance(0.5)) to_send_ = random_.below(to_send_);
    leaving_.arm(loop_.now() + Duration(random_.between(0, kMaxStay.count())));
  }
  if (options_.stalls) to_send_ = random_.below(to_send_ - kProtocolKnownBytes) + kProtocolKnownBytes;
  loop_.connect(options_.endpoint, kNever, [this, alive = std::weak_ptr<bool>(alive_)](auto stream) {
    if (!alive.expired()) connected(std::move(stream));
  });
}

void RawClient::connected(Result<std::unique_ptr<io::Stream>> stream) {
  if (!done_) return;
  if (!stream) return finish(fail(stream.error()));
  stream_ = std::move(*stream);
  stream_->set_events(this);
  stream_->want_read();
  on_writable();
}

void RawClient::on_writable() {
  while (stream_ && sent_ < to_send_) {
    const Bytes rest = as_bytes(std::string_view(options_.request).substr(sent_, to_send_ - sent_));
    const io::IoResult result = stream_->write({&rest, 1});
    if (result.state == io::IoState::kWouldBlock) return stream_->want_write();
    if (result.state != io::IoState::kOk) return;  // reading says why
    sent_ += result.bytes;
  }
}

void RawClient::on_readable() {
  if (stream_) sip();
}

void RawClient::sip() {
  std::array<std::byte, kMaxSipBytes> room;
  const auto size = static_cast<std::size_t>(random_.between(1, kMaxSipBytes));
  const io::IoResult result = stream_->read(MutableBytes(room).first(size));
  switch (result.state) {
    case io::IoState::kWouldBlock: return stream_->want_read();
    case io::IoState::kEnd: return finish(fail(Code::kUnavailable, "the server closed before its answer was complete"));
    case io::IoState::kFailed: return finish(fail(stream_->error()));
    case io::IoState::kOk: break;
  }
  received_ += as_text(Bytes(room).first(result.bytes));
  RawResponse response;
  if (complete(response)) return finish(std::move(response));
  next_sip_.arm(loop_.now() + Duration(random_.between(0, kMaxSipPause.count())));
}

bool RawClient::complete(RawResponse& response) const {
  const auto head_end = received_.find("\r\n\r\n");
  if (head_end == std::string::npos) return false;
  response.head = received_.substr(0, head_end + 2);
  std::ranges::transform(response.head, response.head.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto field = response.head.find(kLengthField);
  if (field == std::string::npos) return false;
  std::size_t length = 0;
  const auto digits = response.head.find_first_not_of(' ', field + kLengthField.size());
  std::from_chars(response.head.data() + digits, response.head.data() + response.head.size(), length);
  response.body = received_.substr(head_end + 4);
  return response.body.size() >= length;
}

void RawClient::finish(Result<RawResponse> result) {
  if (!done_) return;
  next_sip_.disarm();
  leaving_.disarm();
  if (stream_) stream_->close();
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace sluice::sim
