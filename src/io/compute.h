// Where computation runs. One ComputePool for the process, with a budget of cores taken from the
// cgroup; engines take slices of it. Nothing else creates threads (tools/tidy).
//
// An Executor is a place to run tasks; the pool's slices are executors, and so is the simulator's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/function.h"

namespace sluice::io {

class Executor {
 public:
  virtual ~Executor() = default;
  // Any thread. Tasks start in order; up to the executor's width run at the same time.
  virtual void submit(Function<void()> task) = 0;
};

// Cores this process may use: the smallest of the affinity mask and the cgroup's cpu.max (v2) or
// cfs quota (v1), rounded up, at least 1.
int core_budget();

enum class Priority {
  kNormal,
  kLow,  // model loading and warm-up: SCHED_BATCH and nice 10, so that live latency does not rise
};

class ComputePool {
 public:
  struct Options {
    int threads = 0;         // 0 = core_budget()
    int loader_threads = 1;  // at low priority, apart from the others
  };
  explicit ComputePool(const Options& options);
  // Runs what is queued, the loader's first, then joins. What is submitted to an executor after its
  // threads have gone is destroyed, not run.
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const;

  // An executor that runs at most `width` of its tasks at once on the pool's threads. Slices share the
  // threads fairly, round robin. A slice may be destroyed while its tasks run; they finish.
  std::unique_ptr<Executor> slice(std::string name, int width);
  // Low priority, for loading and warm-up; its tasks never take the place of a slice's.
  Executor& loader();

 private:
  class State;
  std::shared_ptr<State> state_;
};

// A thread that a third-party runtime wants to have made for it (ONNX Runtime's pool). Named, joined by
// join_thread. The only other way to a thread in Sluice.
class Thread;
Thread* start_thread(std::string name, Priority priority, Function<void()> body);
void join_thread(Thread* thread);

// Lowers the calling thread's priority for the length of a scope. The nice value is left alone where the
// system would not let the thread take it back (no CAP_SYS_NICE, no RLIMIT_NICE).
class ScopedLowPriority {
 public:
  ScopedLowPriority();
  ~ScopedLowPriority();
  ScopedLowPriority(const ScopedLowPriority&) = delete;
  ScopedLowPriority& operator=(const ScopedLowPriority&) = delete;

 private:
  const int policy_;
  const int nice_;
};

}  // namespace sluice::io
