#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "io/sim/sim_network.h"

namespace sluice::io {
namespace {

// A write takes less than it could, and a wait ends without need, once in so many times: both are allowed,
// and owners must live with them.
constexpr double kShortWriteChance = 1.0 / 16;
constexpr double kSpuriousChance = 1.0 / 32;
constexpr double kTinyPieceChance = 1.0 / 8;
constexpr std::size_t kTinyPieceBytes = 16;
constexpr Duration kAtOnce{0};

}  // namespace

SimConnection::SimConnection(SimCore& core, std::uint64_t id, std::array<SimLoop*, 2> loops,
                             std::array<std::string, 2> peers)
    : core_(core), id_(id) {
  for (Side side = 0; side < 2; ++side) {
    ends_[side].loop = loops[side];
    ends_[side].peer = std::move(peers[side]);
  }
  core_.network->connections_.emplace(id_, this);
}

SimConnection::~SimConnection() { core_.network->connections_.erase(id_); }

IoResult SimConnection::read(Side side, MutableBytes into) {
  End& end = ends_[side];
  SLUICE_CHECK(!into.empty(), "a read needs room");
  if (end.failed || end.closed) return {IoState::kFailed, 0};
  if (end.unread == 0) return {end.end_arrived ? IoState::kEnd : IoState::kWouldBlock, 0};
  std::size_t done = 0;
  while (done < into.size() && !end.arrived.empty()) {
    const std::string& piece = end.arrived.front();
    const std::size_t take = std::min(into.size() - done, piece.size() - end.front_offset);
    std::memcpy(into.data() + done, piece.data() + end.front_offset, take);
    done += take;
    end.front_offset += take;
    if (end.front_offset == piece.size()) {
      end.arrived.pop_front();
      end.front_offset = 0;
    }
  }
  end.unread -= done;
  const End& writer = ends_[1 - side];
  if (writer.wants_write && writable(writer, end)) schedule_ready(1 - side, false, core_.network->latency());
  return {IoState::kOk, done};
}

IoResult SimConnection::write(Side side, std::span<const Bytes> parts) {
  End& end = ends_[side];
  SLUICE_CHECK(parts.size() <= kMaxWriteParts, "a write takes at most kMaxWriteParts");
  if (end.failed || end.closed) return {IoState::kFailed, 0};
  SLUICE_CHECK(!end.end_sent, "a write after shutdown_write()");
  const End& other = ends_[1 - side];
  const std::size_t taken = other.in_flight + other.unread;
  if (taken >= core_.options.window_bytes) return {IoState::kWouldBlock, 0};
  std::size_t room = core_.options.window_bytes - taken;
  if (core_.random.chance(kShortWriteChance)) room = core_.random.between(1, static_cast<std::int64_t>(room));
  std::string bytes;
  for (const Bytes& part : parts) {
    bytes += as_text(part.first(std::min(part.size(), room - bytes.size())));
    if (bytes.size() == room) break;
  }
  for (std::size_t sent = 0; sent < bytes.size();) {
    std::size_t limit = std::max<std::size_t>(core_.options.max_piece_bytes, 1);
    if (core_.random.chance(kTinyPieceChance)) limit = std::min(limit, kTinyPieceBytes);
    const std::size_t size = std::min<std::size_t>(core_.random.below(limit) + 1, bytes.size() - sent);
    send_piece(1 - side, bytes.substr(sent, size));
    sent += size;
  }
  return {IoState::kOk, bytes.size()};
}

Time SimConnection::arrival_time(End& to) {
  to.last_arrival = std::max(to.last_arrival, core_.now + core_.network->latency());
  return to.last_arrival;
}

void SimConnection::send_piece(Side to, std::string piece) {
  ends_[to].in_flight += piece.size();
  core_.schedule(arrival_time(ends_[to]), SimEventKind::kDeliver,
                 [self = shared_from_this(), to, piece = std::move(piece)]() mutable {
                   self->deliver(to, std::move(piece));
                 });
}

void SimConnection::deliver(Side to, std::string piece) {
  End& end = ends_[to];
  core_.mix(id_ * 2 + to);
  core_.mix_bytes(piece);
  end.in_flight -= piece.size();
  if (end.failed) return;
  if (end.closed) return fail_after_latency(1 - to, "connection reset by peer: it had closed");
  if (core_.options.reset_chance > 0 && core_.random.chance(core_.options.reset_chance)) {
    return reset("connection reset");
  }
  end.unread += piece.size();
  end.arrived.push_back(std::move(piece));
  end.loop->turn([&] { tell(to, true); });
}

void SimConnection::send_end(Side to) {
  core_.schedule(arrival_time(ends_[to]), SimEventKind::kDeliver, [self = shared_from_this(), to] {
    End& end = self->ends_[to];
    self->core_.mix(self->id_ * 2 + to);
    if (end.failed || end.closed) return;
    end.end_arrived = true;
    end.loop->turn([&] { self->tell(to, true); });
  });
}

void SimConnection::shutdown_write(Side side) {
  End& end = ends_[side];
  if (end.end_sent || end.failed || end.closed) return;
  end.end_sent = true;
  send_end(1 - side);
}

void SimConnection::close(Side side) {
  End& end = ends_[side];
  if (end.closed) return;
  shutdown_write(side);
  end.closed = true;
  end.events = nullptr;
  if (end.unread > 0) fail_after_latency(1 - side, "connection reset by peer: it closed with bytes unread");
  end.arrived.clear();
  end.unread = 0;
}

void SimConnection::reset(std::string_view reason) {
  fail(0, reason);
  fail(1, reason);
}

void SimConnection::fail_after_latency(Side side, std::string_view reason) {
  // A reset travels behind what was sent before it.
  core_.schedule(arrival_time(ends_[side]), SimEventKind::kDeliver,
                 [self = shared_from_this(), side, reason = std::string(reason)] { self->fail(side, reason); });
}

void SimConnection::fail(Side side, std::string_view reason) {
  End& end = ends_[side];
  if (end.failed || end.closed) return;
  end.failed = true;
  end.error = Error{Code::kUnavailable, std::string(reason)};
  end.arrived.clear();
  end.unread = 0;
  core_.mix(id_ * 2 + side);
  if (end.wants_read) schedule_ready(side, true, kAtOnce);
  if (end.wants_write) schedule_ready(side, false, kAtOnce);
}

void SimConnection::want_read(Side side) {
  End& end = ends_[side];
  if (end.closed || end.wants_read) return;
  end.wants_read = true;
  if (readable(end)) {
    schedule_ready(side, true, kAtOnce);
  } else if (core_.random.chance(kSpuriousChance)) {
    schedule_ready(side, true, core_.network->latency());
  }
}

void SimConnection::want_write(Side side) {
  End& end = ends_[side];
  if (end.closed || end.wants_write) return;
  end.wants_write = true;
  if (writable(end, ends_[1 - side])) {
    schedule_ready(side, false, kAtOnce);
  } else if (core_.random.chance(kSpuriousChance)) {
    schedule_ready(side, false, core_.network->latency());
  }
}

void SimConnection::schedule_ready(Side side, bool for_read, Duration after) {
  core_.schedule_after(after, SimEventKind::kReady, [self = shared_from_this(), side, for_read] {
    self->core_.mix(self->id_ * 4 + side * 2 + (for_read ? 1 : 0));
    self->ends_[side].loop->turn([&] { self->tell(side, for_read); });
  });
}

void SimConnection::tell(Side side, bool for_read) {
  End& end = ends_[side];
  bool& wants = for_read ? end.wants_read : end.wants_write;
  if (end.closed || !wants || !end.events) return;
  wants = false;
  if (for_read) {
    end.events->on_readable();
  } else {
    end.events->on_writable();
  }
}

}  // namespace sluice::io
