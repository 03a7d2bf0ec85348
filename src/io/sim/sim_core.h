// The heart of a simulated world, private to io/sim: virtual time, one queue of events in order of (time,
// arrival), the generator, the digest, and where the code that runs now believes to be.
//
//   step: the earliest of { events, each loop's timers } -> time moves there -> its task runs -> digest
//
// A turn is one event handled on one loop, followed by what was deferred meanwhile. Outside of turns the
// caller (a test's body, a world event) counts as every loop's thread, so that it can set things up; a task
// of an executor counts as none's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function.h"
#include "base/random.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/sim/sim_world.h"

namespace sluice::io {

class SimNetwork;
struct SimCore;

// Goes into the digest with the event's time.
enum class SimEventKind : std::uint8_t { kWorld, kPost, kTimer, kConnect, kDeliver, kReady, kWork };

class SimEventQueue {
 public:
  struct Event {
    Time at;
    std::uint64_t order;
    SimEventKind kind;
    Function<void()> run;
  };

  void push(Time at, SimEventKind kind, Function<void()> run);
  Time earliest() const { return heap_.empty() ? kNever : heap_.front().at; }
  Event pop();  // not when empty
  bool empty() const { return heap_.empty(); }

 private:
  std::vector<Event> heap_;
  std::uint64_t next_order_ = 0;
};

class SimLoop final : public Loop {
 public:
  SimLoop(SimCore& core, std::uint32_t index, std::string name);
  ~SimLoop() override;

  Time now() const override;
  std::int64_t wall_ms() const override;
  void post(Function<void()> task) override;
  bool on_loop_thread() const override;
  void defer(Function<void()> task) override;
  TimerQueue& timers() override { return timers_; }
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const ListenOptions& options,
                                           AcceptHandler on_accept) override;
  void connect(const Endpoint& to, Time deadline, ConnectHandler done) override;

  // Handles one event here: `task`, then what was deferred.
  template <class Task>
  void turn(Task&& task) {
    begin_turn();
    task();
    end_turn();
  }
  std::uint32_t index() const { return index_; }
  const std::string& name() const { return name_; }

 private:
  void begin_turn();
  void end_turn();
  void run_posted();

  SimCore& core_;
  std::uint32_t index_;
  std::string name_;
  TimerQueue timers_;
  std::vector<Function<void()>> posted_;
  std::vector<Function<void()>> deferred_;
};

struct SimCore {
  SimCore(std::uint64_t seed, SimNetworkOptions options);
  ~SimCore();

  void schedule(Time at, SimEventKind kind, Function<void()> run);
  void schedule_after(Duration delay, SimEventKind kind, Function<void()> run) {
    schedule(saturating_add(now, delay), kind, std::move(run));
  }
  // Due next, kNever when nothing is.
  Time earliest() const;
  // Runs the one event that is due next, at its time. Not when nothing is due.
  void step();
  void mix(std::uint64_t value);
  void mix_bytes(std::string_view bytes);

  Random random;
  SimNetworkOptions options;
  Time now;
  std::uint64_t digest = 0;
  std::uint64_t events_run = 0;
  std::uint64_t events_at_this_time = 0;
  SimLoop* running = nullptr;  // whose turn it is
  bool on_worker = false;      // a task of an executor runs
  bool stepping = false;
  bool ending = false;         // nothing is scheduled any more

  SimEventQueue events;
  std::unique_ptr<SimNetwork> network;
  std::vector<std::unique_ptr<SimLoop>> loops;
};

}  // namespace sluice::io
