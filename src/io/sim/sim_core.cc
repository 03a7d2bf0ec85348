#include "io/sim/sim_core.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "io/sim/sim_network.h"

namespace sluice::io {
namespace {

// A world that handles this many events without its time moving is caught in a circle.
constexpr std::uint64_t kMaxEventsAtOneTime = 2'000'000;
// Time{} means "not reached" in many structs, so a world starts later.
constexpr Duration kStart = std::chrono::seconds(1);

bool later(const SimEventQueue::Event& a, const SimEventQueue::Event& b) {
  return a.at != b.at ? a.at > b.at : a.order > b.order;
}

}  // namespace

void SimEventQueue::push(Time at, SimEventKind kind, Function<void()> run) {
  heap_.push_back({at, next_order_++, kind, std::move(run)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

SimEventQueue::Event SimEventQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Event event = std::move(heap_.back());
  heap_.pop_back();
  return event;
}

SimCore::SimCore(std::uint64_t seed, SimNetworkOptions options)
    : random(seed), options(options), now(Time{} + kStart), network(std::make_unique<SimNetwork>(*this)) {
  mix(seed);
}

SimCore::~SimCore() {
  ending = true;
  // Events own streams and tasks; what these destroy may still ask for loops and the network.
  while (!events.empty()) events.pop();
  loops.clear();
}

void SimCore::schedule(Time at, SimEventKind kind, Function<void()> run) {
  if (!ending) events.push(std::max(at, now), kind, std::move(run));
}

Time SimCore::earliest() const {
  Time earliest = events.earliest();
  for (const auto& loop : loops) earliest = std::min(earliest, loop->timers().earliest());
  return earliest == kNever ? kNever : std::max(earliest, now);
}

void SimCore::step() {
  SLUICE_CHECK(!stepping, "a world runs inside one of its own events");
  stepping = true;
  const Time due = earliest();
  events_at_this_time = due == now ? events_at_this_time + 1 : 0;
  SLUICE_CHECK(events_at_this_time < kMaxEventsAtOneTime, "virtual time stands still: a task arms itself for now");
  now = due;
  ++events_run;
  mix(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  if (events.earliest() <= now) {
    SimEventQueue::Event event = events.pop();
    mix(static_cast<std::uint64_t>(event.kind));
    event.run();
  } else {
    const auto loop = std::find_if(loops.begin(), loops.end(),
                                   [this](const auto& l) { return l->timers().earliest() <= now; });
    mix(static_cast<std::uint64_t>(SimEventKind::kTimer));
    mix((*loop)->index());
    (*loop)->turn([&] { (*loop)->timers().expire(now); });
  }
  stepping = false;
}

void SimCore::mix(std::uint64_t value) {
  digest = (std::rotl(digest, 23) ^ value) * 0x9e3779b97f4a7c15ULL;
  digest ^= digest >> 29;
}

void SimCore::mix_bytes(std::string_view bytes) {
  mix(bytes.size());
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes.remove_prefix(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  mix(word);
}

}  // namespace sluice::io
