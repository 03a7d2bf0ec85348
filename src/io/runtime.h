// The real runtime of a process: its loops, each on a thread of its own, its compute pool and its
// signals. Made once in main, handed down by reference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/function.h"
#include "io/compute.h"
#include "io/loop.h"

namespace sluice::io {

class Runtime {
 public:
  struct Options {
    int loops = 0;  // 0 = one per four cores, at least one
    ComputePool::Options compute;
  };
  explicit Runtime(const Options& options);
  // Stops and joins the loops, then the compute pool.
  ~Runtime();

  const std::vector<Loop*>& loops() const;
  Loop& loop(std::size_t index = 0) const { return *loops()[index]; }
  ComputePool& compute();

  // Calls `handler(signal)` on loop 0 for each SIGINT, SIGTERM or SIGHUP. SIGPIPE is ignored.
  void on_signal(Function<void(int)> handler);
  // Blocks the caller (main) until stop(); stop() may come from any thread.
  void wait_until_stopped();
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Seeds a process: from the system's entropy. Everything else draws from base/random.h.
std::uint64_t random_seed();

// Runs `body` on the loop and waits for its result: for command-line programs and tests, never on a
// loop's own thread.
void run_on(Loop& loop, Function<void()> body);

}  // namespace sluice::io
