#include "io/runtime.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <semaphore>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "io/asio/asio_loop.h"

namespace sluice::io {
namespace {

constexpr int kCoresPerLoop = 4;

// SIGINT, SIGTERM and SIGHUP, for as long as it lives; on one loop.
class Signals {
 public:
  Signals(AsioLoop& loop, Function<void(int)> handler)
      : loop_(loop), set_(loop.context(), SIGINT, SIGTERM, SIGHUP), handler_(std::move(handler)) {
    wait();
  }

 private:
  void wait() {
    set_.async_wait([this](const error_code& error, int signal) {
      if (error) return;  // the end
      const AsioLoop::Turn turn(loop_);
      wait();
      handler_(signal);
    });
  }

  AsioLoop& loop_;
  asio::basic_signal_set<AsioExecutor> set_;
  Function<void(int)> handler_;
};

}  // namespace

class Runtime::State {
 public:
  explicit State(const Options& options) : pool_(options.compute) {
    const int wanted = options.loops > 0 ? options.loops : std::max(1, core_budget() / kCoresPerLoop);
    const auto ports = std::make_shared<SharedPorts>();
    for (int i = 0; i < wanted; ++i) {
      AsioLoop* const loop = loops_.emplace_back(std::make_unique<AsioLoop>(ports)).get();
      all_.push_back(loop);
      threads_.push_back(start_thread(fmt::format("loop-{}", i), Priority::kNormal, [loop] { loop->run(); }));
    }
  }

  ~State() {
    for (const auto& loop : loops_) loop->stop();
    for (Thread* const thread : threads_) join_thread(thread);
    signals_.reset();
  }

  const std::vector<Loop*>& loops() const { return all_; }
  ComputePool& compute() { return pool_; }

  void on_signal(Function<void(int)> handler) {
    AsioLoop& loop = *loops_.front();
    SLUICE_CHECK(!loop.on_loop_thread(), "on_signal() is for main");
    run_on(loop, [&] {
      signals_.reset();
      signals_ = std::make_unique<Signals>(loop, std::move(handler));
    });
  }

  void wait_until_stopped() {
    stopped_.acquire();
    stopped_.release();  // it stays stopped
  }
  void stop() {
    if (!stop_was_called_.test_and_set()) stopped_.release();
  }

 private:
  // The pool ends before the loops do: its last tasks post to them.
  std::vector<std::unique_ptr<AsioLoop>> loops_;
  std::vector<Loop*> all_;
  std::vector<Thread*> threads_;
  std::unique_ptr<Signals> signals_;
  std::atomic_flag stop_was_called_;
  std::counting_semaphore<> stopped_{0};
  ComputePool pool_;
};

Runtime::Runtime(const Options& options) {
  // A peer that has gone is told by the write's error.
  std::signal(SIGPIPE, SIG_IGN);
  state_ = std::make_unique<State>(options);
}

Runtime::~Runtime() = default;

const std::vector<Loop*>& Runtime::loops() const { return state_->loops(); }
ComputePool& Runtime::compute() { return state_->compute(); }
void Runtime::on_signal(Function<void(int)> handler) { state_->on_signal(std::move(handler)); }
void Runtime::wait_until_stopped() { state_->wait_until_stopped(); }
void Runtime::stop() { state_->stop(); }

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  // Up to 256 bytes come whole and without an interruption (getrandom(2)).
  SLUICE_CHECK(::getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "the system gives no random numbers");
  return seed;
}

void run_on(Loop& loop, Function<void()> body) {
  SLUICE_CHECK(!loop.on_loop_thread(), "run_on() would wait for its own thread");
  std::promise<void> done;
  const std::future<void> end = done.get_future();
  // A loop that has ended destroys the task and with it the promise, which ends the wait as well.
  loop.post([body = std::move(body), done = std::move(done)]() mutable {
    body();
    body = nullptr;
    done.set_value();
  });
  end.wait();
}

}  // namespace sluice::io
