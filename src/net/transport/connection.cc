#include "net/transport/connection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::net {

ConnectionContext::ConnectionContext(io::Loop& loop) : loop_(loop), read_block_(kReadBlockBytes) {}

ConnectionContext::~ConnectionContext() { buried_.clear(); }

void ConnectionContext::schedule(Connection& connection) {
  if (connection.scheduled_) return;
  connection.scheduled_ = true;
  scheduled_.push_back(&connection);
  request_turn_end();
}

void ConnectionContext::forget(Connection& connection) {
  if (!connection.scheduled_) return;
  std::ranges::replace(scheduled_, &connection, nullptr);
  std::ranges::replace(running_, &connection, nullptr);
}

void ConnectionContext::bury(std::unique_ptr<Connection> connection) {
  buried_.push_back(std::move(connection));
  request_turn_end();
}

void ConnectionContext::defer(Function<void()> task) {
  loop_.defer([context = weak_from_this(), task = std::move(task)]() mutable {
    if (const auto alive = context.lock()) task();
  });
}

void ConnectionContext::request_turn_end() {
  if (std::exchange(turn_end_requested_, true)) return;
  loop_.defer([context = weak_from_this()] {
    if (const auto alive = context.lock()) alive->turn_end();
  });
}

void ConnectionContext::turn_end() {
  turn_end_requested_ = false;
  running_.swap(scheduled_);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]) running_[i]->run_scheduled();
  }
  running_.clear();
  std::exchange(buried_, {}).clear();
}

Connection::Connection(ConnectionContext& context, std::unique_ptr<io::Stream> stream,
                       ConnectionOwner& owner, Duration write_stall_timeout)
    : context_(context),
      stream_(std::move(stream)),
      owner_(owner),
      write_stall_timeout_(write_stall_timeout),
      output_(context_.blocks()),
      timer_(context_.loop().timers(), [this] { on_timer(); }) {
  stream_->set_events(this);
}

Connection::~Connection() {
  closed_ = true;
  stream_->close();
  context_.forget(*this);
}

void Connection::start(std::unique_ptr<Session> session) {
  session_ = std::move(session);
  read_waiting_ = true;
  stream_->want_read();
  context_.schedule(*this);
}

void Connection::replace_session(std::unique_ptr<Session> session) {
  replaced_session_ = std::exchange(session_, std::move(session));
}

void Connection::resume_reading() {
  if (closed_ || std::exchange(reading_, true) || in_entry_) return;
  if (!std::exchange(read_waiting_, true)) stream_->want_read();
}

void Connection::fail(Error reason) {
  if (std::exchange(failed_, true)) return;
  failure_ = std::move(reason);
  schedule();
}

void Connection::shut_down(const Error& reason) {
  if (closed_) return;
  closed_ = true;
  timer_.disarm();
  stream_->close();
  output_.clear();
  session_->broken(reason);
  session_->advance();
}

void Connection::on_readable() {
  read_waiting_ = false;
  if (!enter()) return;
  read_available();
  leave();
}

void Connection::on_writable() {
  write_waiting_ = false;
  if (enter()) leave();
}

void Connection::run_scheduled() {
  scheduled_ = false;
  if (enter()) leave();
}

void Connection::on_timer() {
  if (!enter()) return;
  if (write_waiting_ && now_ >= saturating_add(write_progress_, write_stall_timeout_)) {
    ++context_.timeouts;
    fail({Code::kCancelled, "the peer took no byte of what was ready within the write stall time-out"});
  } else if (lingering_ && now_ >= linger_deadline_) {
    input_ended_ = true;
  } else if (now_ >= session_->deadline()) {
    session_->expire(now_);
  }
  leave();
}

bool Connection::enter() {
  if (closed_ || in_entry_) return false;
  in_entry_ = true;
  now_ = context_.loop().now();
  return true;
}

void Connection::leave() {
  for (int round = 0; !failed_; ++round) {
    session_->advance();
    flush();
    if (failed_ || !session_->notify_writable()) break;
    if (round + 1 == kMaxRoundsPerEntry) {
      context_.schedule(*this);
      break;
    }
  }
  if (failed_) {
    session_->broken(failure_);
    session_->advance();
    close();
  } else {
    finish_if_done();
  }
  in_entry_ = false;
  replaced_session_.reset();
  if (closed_) return;
  if (reading_ && !input_ended_ && !std::exchange(read_waiting_, true)) stream_->want_read();
  rearm();
}

void Connection::read_available() {
  for (int i = 0; i < kMaxReadsPerEntry; ++i) {
    if (failed_ || input_ended_ || !read_once()) return;
  }
}

bool Connection::read_once() {
  MutableBytes space = lingering_ ? context_.read_block() : session_->read_space(context_.read_block());
  reading_ = !space.empty();
  if (!reading_) return false;
  const io::IoResult result = stream_->read(space);
  switch (result.state) {
    case io::IoState::kOk:
      context_.bytes_read += result.bytes;
      if (!lingering_ && !session_->received(space.first(result.bytes))) return false;
      return result.bytes == space.size();  // a short read has emptied the socket
    case io::IoState::kWouldBlock:
      return false;
    case io::IoState::kEnd:
      input_ended_ = true;
      if (!lingering_) session_->end_of_input();
      return false;
    case io::IoState::kFailed:
      fail(stream_->error());
      return false;
  }
  return false;
}

void Connection::flush() {
  for (int i = 0; i < kMaxWritesPerEntry && !failed_; ++i) {
    session_->produce(output_);
    if (write_waiting_ || output_.empty() || failed_) return;
    Bytes parts[io::kMaxWriteParts];
    const io::IoResult result = stream_->write({parts, output_.gather(parts)});
    if (result.state == io::IoState::kFailed) return fail(stream_->error());
    write_progress_ = now_;
    if (result.state == io::IoState::kWouldBlock) break;
    context_.bytes_written += result.bytes;
    output_.consume(result.bytes);
  }
  if (failed_ || output_.empty()) return;
  write_waiting_ = true;
  stream_->want_write();
}

// The last bytes must not be lost to a reset, which a close with unread input causes: our side ends first, and
// what the peer still sends is dropped until it closes too (or for kLinger).
void Connection::finish_if_done() {
  if (!session_->done() || !output_.empty()) return;
  session_->broken({Code::kCancelled, "the connection ended before the response was finished"});
  session_->advance();
  if (input_ended_) return close();
  if (std::exchange(lingering_, true)) return;
  linger_deadline_ = saturating_add(now_, kLinger);
  reading_ = true;
  stream_->shutdown_write();
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  timer_.disarm();
  stream_->close();
  output_.clear();
  owner_.connection_closed(*this);
}

Time Connection::next_deadline() const {
  if (lingering_) return linger_deadline_;
  const Time write = write_waiting_ ? saturating_add(write_progress_, write_stall_timeout_) : kNever;
  return std::min(write, session_->deadline());
}

// Lazily: a timer that is armed for an earlier time stays and looks again when it fires.
void Connection::rearm() {
  const Time at = next_deadline();
  if (!timer_.armed() ? at != kNever : at < timer_.at()) timer_.arm(at);
}

}  // namespace sluice::net
