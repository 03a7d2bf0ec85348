#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "io/compute.h"

namespace sluice::io {
namespace {

constexpr int kLowNice = 10;
constexpr std::size_t kMaxNameLength = 15;  // the kernel's limit

// On Linux the nice value belongs to the thread (setpriority(2)).
int own_nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }
bool set_own_nice(int nice) { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice) == 0; }

void set_own_policy(int policy) {
  const sched_param parameters{};
  ::sched_setscheduler(0, policy, &parameters);  // fails for a thread that has another class: it keeps that
}

// Without a privilege a thread can only get nicer, and would stay so.
bool may_restore_nice(int nice) { return set_own_nice(nice - 1) && set_own_nice(nice); }

}  // namespace

class Thread {
 public:
  explicit Thread(Function<void()> body) : thread_(std::move(body)) {}
  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

Thread* start_thread(std::string name, Priority priority, Function<void()> body) {
  name.resize(std::min(name.size(), kMaxNameLength));
  return new Thread([name = std::move(name), priority, body = std::move(body)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    if (priority == Priority::kLow) {
      set_own_policy(SCHED_BATCH);
      set_own_nice(kLowNice);
    }
    body();
  });
}

void join_thread(Thread* thread) {
  thread->join();
  delete thread;
}

ScopedLowPriority::ScopedLowPriority() : policy_(::sched_getscheduler(0)), nice_(own_nice()) {
  if (policy_ == SCHED_OTHER) set_own_policy(SCHED_BATCH);
  if (nice_ < kLowNice && may_restore_nice(nice_)) set_own_nice(kLowNice);
}

ScopedLowPriority::~ScopedLowPriority() {
  if (own_nice() != nice_) set_own_nice(nice_);
  if (policy_ == SCHED_OTHER) set_own_policy(SCHED_OTHER);
}

}  // namespace sluice::io
