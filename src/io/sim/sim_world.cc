#include "io/sim/sim_world.h"

#include <deque>

#include "base/check.h"
#include "io/sim/sim_core.h"
#include "io/sim/sim_network.h"

namespace sluice::io {
namespace {

// The queue of an executor, which outlives it: tasks that were submitted run.
struct WorkQueue {
  SimCore& core;
  Function<Duration()> cost;
  std::deque<Function<void()>> waiting;
  Time free_at;
  bool scheduled = false;
};

void run_next(const std::shared_ptr<WorkQueue>& queue);

void schedule_next(const std::shared_ptr<WorkQueue>& queue) {
  if (queue->scheduled || queue->waiting.empty()) return;
  queue->scheduled = true;
  queue->core.schedule(queue->free_at, SimEventKind::kWork, [queue] { run_next(queue); });
}

void run_next(const std::shared_ptr<WorkQueue>& queue) {
  queue->scheduled = false;
  queue->free_at = saturating_add(queue->core.now, queue->cost());
  Function<void()> task = std::move(queue->waiting.front());
  queue->waiting.pop_front();
  queue->core.on_worker = true;
  task();
  queue->core.on_worker = false;
  schedule_next(queue);
}

class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(std::shared_ptr<WorkQueue> queue) : queue_(std::move(queue)) {}
  void submit(Function<void()> task) override {
    queue_->waiting.push_back(std::move(task));
    schedule_next(queue_);
  }

 private:
  std::shared_ptr<WorkQueue> queue_;
};

}  // namespace

class SimWorld::State {
 public:
  State(std::uint64_t seed, SimNetworkOptions options) : core(seed, options) {}
  SimCore core;
};

SimWorld::SimWorld(std::uint64_t seed, SimNetworkOptions network) : state_(std::make_unique<State>(seed, network)) {}
SimWorld::~SimWorld() = default;

Random& SimWorld::random() { return state_->core.random; }
Time SimWorld::now() const { return state_->core.now; }

Loop& SimWorld::make_loop(std::string name) {
  SimCore& core = state_->core;
  const auto index = static_cast<std::uint32_t>(core.loops.size());
  core.loops.push_back(std::make_unique<SimLoop>(core, index, std::move(name)));
  return *core.loops.back();
}

std::unique_ptr<Executor> SimWorld::make_executor(Function<Duration()> cost) {
  return std::make_unique<SimExecutor>(
      std::make_shared<WorkQueue>(WorkQueue{state_->core, std::move(cost), {}, state_->core.now}));
}

void SimWorld::run_for(Duration length) {
  SimCore& core = state_->core;
  const Time end = core.now + length;
  while (core.earliest() <= end) core.step();
  core.now = end;
}

bool SimWorld::run_until(Function<bool()> done, Duration limit) {
  SimCore& core = state_->core;
  const Time end = saturating_add(core.now, limit);
  while (!done()) {
    const Time next = core.earliest();
    if (next == kNever || next > end) return false;
    core.step();
  }
  return true;
}

void SimWorld::at(Time when, Function<void()> event) {
  state_->core.schedule(when, SimEventKind::kWorld, std::move(event));
}

SimNetworkOptions& SimWorld::network() { return state_->core.options; }

void SimWorld::reset_all_streams_of(Loop& loop) {
  auto* sim_loop = dynamic_cast<SimLoop*>(&loop);
  SLUICE_CHECK(sim_loop != nullptr, "a loop of this world");
  state_->core.network->reset_all_streams_of(*sim_loop);
}

std::size_t SimWorld::open_streams() const { return state_->core.network->open_streams(); }
std::uint64_t SimWorld::events_run() const { return state_->core.events_run; }
std::uint64_t SimWorld::digest() const { return state_->core.digest; }

}  // namespace sluice::io
