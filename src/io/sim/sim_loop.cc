#include "base/check.h"
#include "io/sim/sim_core.h"
#include "io/sim/sim_network.h"

namespace sluice::io {
namespace {

// How long a loop that sleeps takes to see a post; drawn, so that seeds differ in who comes first.
constexpr std::int64_t kMaxWakeNs = 3'000;
constexpr std::int64_t kWallEpochMs = 1'700'000'000'000;

}  // namespace

SimLoop::SimLoop(SimCore& core, std::uint32_t index, std::string name)
    : core_(core), index_(index), name_(std::move(name)) {}

SimLoop::~SimLoop() = default;

Time SimLoop::now() const { return core_.now; }

std::int64_t SimLoop::wall_ms() const {
  return kWallEpochMs + std::chrono::duration_cast<std::chrono::milliseconds>(core_.now.time_since_epoch()).count();
}

bool SimLoop::on_loop_thread() const { return core_.running ? core_.running == this : !core_.on_worker; }

void SimLoop::post(Function<void()> task) {
  if (core_.ending) return;
  posted_.push_back(std::move(task));
  if (posted_.size() > 1) return;  // the wake-up is under way
  core_.schedule_after(Duration(core_.random.between(0, kMaxWakeNs)), SimEventKind::kPost,
                       [this] { turn([this] { run_posted(); }); });
}

void SimLoop::run_posted() {
  core_.mix(index_);
  auto tasks = std::exchange(posted_, {});
  core_.mix(tasks.size());
  for (auto& task : tasks) task();
}

void SimLoop::defer(Function<void()> task) {
  if (core_.ending) return;
  deferred_.push_back(std::move(task));
  if (core_.running != this && deferred_.size() == 1) {
    core_.schedule(core_.now, SimEventKind::kPost, [this] { turn([] {}); });
  }
}

void SimLoop::begin_turn() {
  SLUICE_CHECK(!core_.running && !core_.on_worker, "one thing at a time");
  core_.running = this;
}

void SimLoop::end_turn() {
  while (!deferred_.empty()) {
    auto tasks = std::exchange(deferred_, {});
    for (auto& task : tasks) task();
  }
  core_.running = nullptr;
}

Result<std::unique_ptr<Listener>> SimLoop::listen(const Endpoint& at, const ListenOptions& options,
                                                  AcceptHandler on_accept) {
  return core_.network->listen(*this, at, options, std::move(on_accept));
}

void SimLoop::connect(const Endpoint& to, Time deadline, ConnectHandler done) {
  core_.network->connect(*this, to, deadline, std::move(done));
}

}  // namespace sluice::io
