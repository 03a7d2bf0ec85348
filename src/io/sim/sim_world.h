// A world in virtual time, replayed from a seed: loops, a network between them, and executors. One
// thread runs everything; nothing happens but by run_*(). The same seed gives the same history, event
// for event (digest() proves it).
//
//   SimWorld world(seed, options);
//   io::Loop& server = world.make_loop("server");
//   io::Loop& client = world.make_loop("client");
//   ... server.listen(...), client.connect(...), as with real loops ...
//   world.run_for(std::chrono::seconds(5));
//
// The network delays each write, cuts it into random pieces, keeps order, blocks a writer whose peer
// does not read (window), and resets connections when told to. A post takes a random moment to be seen, so
// that seeds differ in who comes first.
//
// Code that runs outside of the loops' events (a test's body, at()) counts as on every loop's thread; a task
// of an executor as on none. Streams, listeners and timers end before their world.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/function.h"
#include "base/random.h"
#include "base/time.h"
#include "io/compute.h"
#include "io/loop.h"

namespace sluice::io {

struct SimNetworkOptions {
  Duration min_latency = std::chrono::microseconds(20);
  Duration max_latency = std::chrono::microseconds(200);
  std::size_t max_piece_bytes = 65536;    // a write arrives in pieces of 1..this
  std::size_t window_bytes = 256 * 1024;  // unread bytes after which the writer would block
  double reset_chance = 0;                // per delivered piece: the connection breaks (both sides fail)
};

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed, SimNetworkOptions network = {});
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  Random& random();
  Time now() const;

  // Lives as long as the world.
  Loop& make_loop(std::string name);
  // Runs tasks one at a time; task n starts when task n-1's `cost` has passed (drawn per task).
  std::unique_ptr<Executor> make_executor(Function<Duration()> cost);

  // Runs events in order of time until none is due before the end / none is left / `done()` is true.
  void run_for(Duration length);
  // False when `limit` came first.
  bool run_until(Function<bool()> done, Duration limit);

  // A scheduled event of the world itself: faults, arrivals.
  void at(Time when, Function<void()> event);
  SimNetworkOptions& network();           // may change while running
  void reset_all_streams_of(Loop& loop);  // as if its machine had gone
  std::size_t open_streams() const;       // neither closed nor failed: a leak check
  std::uint64_t events_run() const;
  std::uint64_t digest() const;           // of the history so far

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::io
