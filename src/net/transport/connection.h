// A connection: the shell around a protocol's state. It moves bytes between a stream and a Session, waits for
// readiness, keeps the one timer, and closes in order; server and client connections are the same here.
//
//   stream --read--> Session::received        Session::produce --> OutputQueue --write--> stream
//
// Every event (readable, writable, timer, scheduled) is one entry: the work, then Session::advance, then the
// writes, so that what a whole turn has produced leaves in as few writes as possible. Work that begins
// elsewhere (an engine's answer) calls schedule() and is written at the end of the loop's turn.
//
// Thread: the loop's. Owner: a ConnectionOwner, which gives a closed connection to bury() and never destroys
// it in the middle of an entry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/stream.h"
#include "net/transport/output_queue.h"

namespace sluice::net {

class Connection;

// A protocol's state over one connection. The functions are called inside of an entry, never nested.
class Session {
 public:
  virtual ~Session() = default;

  // Where the next bytes should land: a part of `shared`, or memory of the session's choice. Empty: no reading
  // now; Connection::resume_reading() ends that.
  virtual MutableBytes read_space(MutableBytes shared) = 0;
  // They lie at the begin of what read_space() gave. Returns whether more is expected at once.
  virtual bool received(Bytes bytes) = 0;
  // The peer has closed its side.
  virtual void end_of_input() = 0;
  // Before the writes: destroys what is over, begins what has become possible.
  virtual void advance() = 0;
  // Appends what may be sent now, up to about kOutputTarget.
  virtual void produce(OutputQueue& out) = 0;
  // After the writes: tells those who wait for room; true when somebody was told.
  virtual bool notify_writable() = 0;
  // The earliest time at which expire() has something to do. Cheap; may move either way.
  virtual Time deadline() const = 0;
  virtual void expire(Time now) = 0;
  // The connection is dead; everything open is over.
  virtual void broken(const Error& reason) = 0;
  // Nothing more will be read or produced.
  virtual bool done() const = 0;
};

class ConnectionOwner {
 public:
  // Must move the connection to ConnectionContext::bury().
  virtual void connection_closed(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// What the connections of one server or client share: the read block, the pool of output blocks, and the
// list of those to look at when the loop's turn ends.
class ConnectionContext : public std::enable_shared_from_this<ConnectionContext> {
 public:
  explicit ConnectionContext(io::Loop& loop);
  ~ConnectionContext();

  io::Loop& loop() { return loop_; }
  MutableBytes read_block() { return read_block_; }
  BlockPool& blocks() { return blocks_; }

  void schedule(Connection& connection);
  void forget(Connection& connection);  // it is being destroyed
  void bury(std::unique_ptr<Connection> connection);
  // Runs at the end of the turn, unless the context has gone by then. (Contexts live in a shared_ptr for this.)
  void defer(Function<void()> task);

  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t timeouts = 0;

 private:
  static constexpr std::size_t kReadBlockBytes = 256 * 1024;
  void request_turn_end();
  void turn_end();

  io::Loop& loop_;
  std::vector<std::byte> read_block_;
  BlockPool blocks_;
  bool turn_end_requested_ = false;
  std::vector<Connection*> scheduled_;
  std::vector<Connection*> running_;
  std::vector<std::unique_ptr<Connection>> buried_;
};

class Connection final : private io::StreamEvents {
 public:
  // The context outlives its connections.
  Connection(ConnectionContext& context, std::unique_ptr<io::Stream> stream, ConnectionOwner& owner,
             Duration write_stall_timeout);
  // Closes; the session is destroyed without being told (close what is open with shut_down() first).
  ~Connection();

  // Begins reading.
  void start(std::unique_ptr<Session> session);
  // From inside of the present session's received(); the old one lives until the entry ends.
  void replace_session(std::unique_ptr<Session> session);
  Session& session() { return *session_; }

  // What follows is for sessions and owners.
  OutputQueue& output() { return output_; }
  io::Loop& loop() { return context_.loop(); }
  ConnectionContext& context() { return context_; }
  const std::string& peer() const { return stream_->peer(); }
  // The time of the entry, or the loop's outside of one.
  Time now() const { return in_entry_ ? now_ : context_.loop().now(); }

  // Something is to be written or done; harmless inside of an entry, whose end does it anyway.
  void schedule() {
    if (!in_entry_ && !closed_) context_.schedule(*this);
  }
  void resume_reading();
  // The connection ends with this entry, whatever is queued. Outside of an entry: at the end of the turn.
  void fail(Error reason);
  // By the owner: tells the session that it is broken, then closes. The owner is not told.
  void shut_down(const Error& reason);

 private:
  friend class ConnectionContext;
  static constexpr int kMaxReadsPerEntry = 8;
  static constexpr int kMaxWritesPerEntry = 64;
  static constexpr int kMaxRoundsPerEntry = 8;
  static constexpr Duration kLinger = std::chrono::seconds(1);

  void on_readable() override;
  void on_writable() override;
  void on_timer();
  void run_scheduled();

  bool enter();
  void leave();
  void read_available();
  bool read_once();  // whether to go on
  void flush();
  void finish_if_done();
  void close();
  Time next_deadline() const;
  void rearm();

  ConnectionContext& context_;
  std::unique_ptr<io::Stream> stream_;
  ConnectionOwner& owner_;
  const Duration write_stall_timeout_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> replaced_session_;
  OutputQueue output_;
  io::Timer timer_;

  Time now_{};
  Time write_progress_{};
  Time linger_deadline_ = kNever;
  Error failure_;
  bool in_entry_ = false;
  bool scheduled_ = false;
  bool reading_ = true;         // false while the session wants no bytes
  bool read_waiting_ = false;   // want_read() is unanswered
  bool write_waiting_ = false;  // want_write() is unanswered
  bool input_ended_ = false;
  bool lingering_ = false;
  bool failed_ = false;
  bool closed_ = false;
};

// A session goes on producing until about this much waits for the socket.
inline constexpr std::size_t kOutputTarget = 512 * 1024;

}  // namespace sluice::net
