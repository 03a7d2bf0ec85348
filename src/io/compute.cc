#include "io/compute.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "io/cgroup.h"

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

namespace {

int cores_of_affinity() {
  std::array<cpu_set_t, 16> mask{};  // 16384 CPUs
  if (::sched_getaffinity(0, sizeof(mask), mask.data()) != 0) return 1;
  return CPU_COUNT_S(sizeof(mask), mask.data());
}

// What one slice has queued. A lane is listed among its crew's ready ones exactly when it has a task
// and is below its width.
struct Lane {
  Lane(std::string lane_name, int max_running) : name(std::move(lane_name)), width(max_running) {}
  const std::string name;  // for who looks at the pool with a debugger
  const int width;
  int running = 0;
  bool listed = false;
  std::deque<Function<void()>> tasks;
};

// Threads that serve lanes in turn: one task of the first ready lane, which then goes to the back.
class Crew {
 public:
  Crew(const std::string& name, int threads, Priority priority);
  ~Crew() { finish(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(workers_.size()); }
  void submit(const std::shared_ptr<Lane>& lane, Function<void()> task);
  void finish();  // runs what is queued, then joins

 private:
  struct Worker {
    Thread* thread = nullptr;
    std::condition_variable wake;
    bool awake = true;
  };
  using Lock = std::unique_lock<std::mutex>;

  void work(Worker& self);
  void sleep(Worker& self, Lock& lock);
  void list_if_ready(const std::shared_ptr<Lane>& lane);
  Worker* take_sleeper();

  std::mutex mutex_;
  std::deque<std::shared_ptr<Lane>> ready_;
  std::vector<Worker*> sleepers_;  // the last to sleep is woken first: its caches are warm
  bool finishing_ = false;
  bool finished_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

Crew::Crew(const std::string& name, int threads, Priority priority) {
  for (int i = 0; i < threads; ++i) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.thread = start_thread(fmt::format("{}-{}", name, i), priority, [this, &worker] { work(worker); });
  }
}

void Crew::submit(const std::shared_ptr<Lane>& lane, Function<void()> task) {
  Worker* sleeper = nullptr;
  {
    const Lock lock(mutex_);
    if (finished_) return;  // nobody is left to run it: `task` is destroyed
    lane->tasks.push_back(std::move(task));
    const bool was_listed = lane->listed;
    list_if_ready(lane);
    if (lane->listed && !was_listed) sleeper = take_sleeper();
  }
  if (sleeper != nullptr) sleeper->wake.notify_one();
}

void Crew::list_if_ready(const std::shared_ptr<Lane>& lane) {
  if (lane->listed || lane->tasks.empty() || lane->running >= lane->width) return;
  lane->listed = true;
  ready_.push_back(lane);
}

Crew::Worker* Crew::take_sleeper() {
  if (sleepers_.empty()) return nullptr;
  Worker* const sleeper = sleepers_.back();
  sleepers_.pop_back();
  sleeper->awake = true;
  return sleeper;
}

void Crew::sleep(Worker& self, Lock& lock) {
  self.awake = false;
  sleepers_.push_back(&self);
  self.wake.wait(lock, [&] { return self.awake; });
}

void Crew::work(Worker& self) {
  Lock lock(mutex_);
  for (;;) {
    if (ready_.empty()) {
      if (finishing_) return;  // a lane at its width is listed again by the thread that runs its task
      sleep(self, lock);
      continue;
    }
    const std::shared_ptr<Lane> lane = std::move(ready_.front());
    ready_.pop_front();
    lane->listed = false;
    Function<void()> task = std::move(lane->tasks.front());
    lane->tasks.pop_front();
    ++lane->running;
    list_if_ready(lane);
    Worker* const helper = ready_.empty() ? nullptr : take_sleeper();
    lock.unlock();
    if (helper != nullptr) helper->wake.notify_one();
    task();
    task = nullptr;  // what it captured goes before the lane counts it as done
    lock.lock();
    --lane->running;
    list_if_ready(lane);
  }
}

void Crew::finish() {
  {
    const Lock lock(mutex_);
    if (finishing_) return;
    finishing_ = true;
    while (Worker* sleeper = take_sleeper()) sleeper->wake.notify_one();
  }
  for (const auto& worker : workers_) join_thread(worker->thread);
  const Lock lock(mutex_);
  finished_ = true;
}

}  // namespace

int core_budget() {
  const int by_affinity = cores_of_affinity();
  const auto quota = cgroup_limits().cores;
  const int by_quota = quota ? static_cast<int>(std::min(std::ceil(*quota), 1e6)) : by_affinity;
  return std::max(1, std::min(by_affinity, by_quota));
}

class ComputePool::State {
 public:
  // A slice's handle: what is queued in its lane outlives it.
  class Slice final : public Executor {
   public:
    Slice(std::shared_ptr<State> state, Crew& crew, std::string name, int width)
        : state_(std::move(state)), crew_(crew), lane_(std::make_shared<Lane>(std::move(name), std::max(1, width))) {}
    void submit(Function<void()> task) override { crew_.submit(lane_, std::move(task)); }

   private:
    const std::shared_ptr<State> state_;  // null for the state's own loader slice
    Crew& crew_;
    const std::shared_ptr<Lane> lane_;
  };

  explicit State(const Options& options)
      : compute("compute", options.threads > 0 ? options.threads : core_budget(), Priority::kNormal),
        loaders("loader", std::max(1, options.loader_threads), Priority::kLow),
        loader(nullptr, loaders, "loader", loaders.size()) {}

  Crew compute;
  Crew loaders;
  Slice loader;
};

ComputePool::ComputePool(const Options& options) : state_(std::make_shared<State>(options)) {}

ComputePool::~ComputePool() {
  state_->loaders.finish();  // first: loading may end with work for a slice
  state_->compute.finish();
}

int ComputePool::threads() const { return state_->compute.size(); }

std::unique_ptr<Executor> ComputePool::slice(std::string name, int width) {
  return std::make_unique<State::Slice>(state_, state_->compute, std::move(name), width);
}

Executor& ComputePool::loader() { return state_->loader; }

}  // namespace sluice::io
