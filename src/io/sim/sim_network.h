// The network of a simulated world, private to io/sim: listeners, connections, and the faults of both.
//
//   end 0 --write--> [ in flight: pieces in order, each after a latency ] --> [ arrived ] --read--> end 1
//          <------------------------- the same the other way -----------------------------
//
// As TCP: what was written before close() or shutdown_write() arrives first, then the end. Bytes that come
// to an end that is closed, or lie unread in it when it closes, answer with a reset. A reset drops what is
// unread. In flight and arrived together are bounded by window_bytes; beyond, the writer would block.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "io/sim/sim_core.h"

namespace sluice::io {

struct SimListening {
  SimLoop& loop;
  Endpoint at;
  bool share_port;
  Loop::AcceptHandler on_accept;
  bool open = true;
};

class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  using Side = unsigned;  // 0 = who connected, 1 = who accepted

  SimConnection(SimCore& core, std::uint64_t id, std::array<SimLoop*, 2> loops, std::array<std::string, 2> peers);
  ~SimConnection();

  IoResult read(Side side, MutableBytes into);
  IoResult write(Side side, std::span<const Bytes> parts);
  void want_read(Side side);
  void want_write(Side side);
  void shutdown_write(Side side);
  void close(Side side);
  // Both ends that are open fail now.
  void reset(std::string_view reason);

  void set_events(Side side, StreamEvents* events) { ends_[side].events = events; }
  const Error& error(Side side) const { return ends_[side].error; }
  const std::string& peer(Side side) const { return ends_[side].peer; }
  bool open(Side side) const { return !ends_[side].closed && !ends_[side].failed; }
  const SimLoop* loop(Side side) const { return ends_[side].loop; }

 private:
  struct End {
    SimLoop* loop = nullptr;
    std::string peer;
    StreamEvents* events = nullptr;
    bool wants_read = false, wants_write = false;
    bool closed = false, failed = false, end_sent = false, end_arrived = false;
    Error error;
    std::deque<std::string> arrived;  // to be read by this end
    std::size_t front_offset = 0;     // read of the first piece
    std::size_t unread = 0;           // in `arrived`
    std::size_t in_flight = 0;        // on the way to this end
    Time last_arrival;                // nothing overtakes
  };

  bool readable(const End& end) const { return end.failed || end.unread > 0 || end.end_arrived; }
  bool writable(const End& end, const End& other) const {
    return end.failed || other.in_flight + other.unread < core_.options.window_bytes;
  }
  Time arrival_time(End& to);
  void send_piece(Side to, std::string piece);
  void send_end(Side to);
  void deliver(Side to, std::string piece);
  void fail(Side side, std::string_view reason);
  void fail_after_latency(Side side, std::string_view reason);
  void schedule_ready(Side side, bool for_read, Duration after);
  void tell(Side side, bool for_read);

  SimCore& core_;
  std::uint64_t id_;
  std::array<End, 2> ends_;
};

class SimNetwork {
 public:
  explicit SimNetwork(SimCore& core) : core_(core) {}

  Result<std::unique_ptr<Listener>> listen(SimLoop& loop, const Endpoint& at, const ListenOptions& options,
                                           Loop::AcceptHandler on_accept);
  void connect(SimLoop& loop, const Endpoint& to, Time deadline, Loop::ConnectHandler done);

  void reset_all_streams_of(const SimLoop& loop);
  std::size_t open_streams() const;
  Duration latency();

 private:
  friend class SimConnection;
  struct Attempt;
  void arrive(const std::shared_ptr<Attempt>& attempt, const Endpoint& to);
  static void finish(const std::shared_ptr<Attempt>& attempt, Result<std::unique_ptr<Stream>> result);
  std::shared_ptr<SimListening> find_listener(const Endpoint& to);
  std::uint16_t free_port(const std::string& host);

  SimCore& core_;
  std::multimap<std::pair<std::string, std::uint16_t>, std::shared_ptr<SimListening>> listeners_;
  std::map<std::uint64_t, SimConnection*> connections_;  // by id: a fixed order for faults
  std::uint64_t next_connection_ = 1;
  std::uint16_t next_port_ = 20000;
};

}  // namespace sluice::io
