// The real loop: Boost.Asio's io_context on epoll, run by one thread.
//
//   a turn = one handler (a readable stream, a batch of posted tasks, expired timers, ...)
//            -> what it deferred -> the kernel timer, when an earlier one was armed
//
// Owner: Runtime, or a test. Streams, listeners and timers of a loop must be gone before it is.
#pragma once

#include <mutex>
#include <vector>

#include "io/asio/boost_asio.h"
#include "io/asio/shared_ports.h"
#include "io/loop.h"

namespace sluice::io {

class AsioLoop final : public Loop {
 public:
  // Loops that are to share a port (ListenOptions::share_port) share `ports`.
  explicit AsioLoop(std::shared_ptr<SharedPorts> ports = std::make_shared<SharedPorts>());
  ~AsioLoop() override;  // after run() has returned
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  void run();   // makes the calling thread the loop's, until stop()
  void stop();  // any thread; what is queued stays queued

  Time now() const override;
  std::int64_t wall_ms() const override;
  void post(Function<void()> task) override;
  bool on_loop_thread() const override;
  void defer(Function<void()> task) override;
  TimerQueue& timers() override { return timers_; }
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const ListenOptions& options,
                                           AcceptHandler on_accept) override;
  void connect(const Endpoint& to, Time deadline, ConnectHandler done) override;

  // For the parts of this loop: each Asio handler opens a turn and leaves it at its end.
  class Turn {
   public:
    explicit Turn(AsioLoop& loop) : loop_(loop) {}
    ~Turn() { loop_.end_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    AsioLoop& loop_;
  };
  asio::io_context& context() { return context_; }

 private:
  void run_posted();
  void run_deferred();
  void end_turn();
  void arm_kernel_timer(Time at);

  std::shared_ptr<SharedPorts> ports_;

  std::mutex mutex_;
  std::vector<Function<void()>> posted_;  // guarded by mutex_; not empty: run_posted is on its way
  bool closed_ = false;                   // guarded by mutex_

  std::vector<Function<void()>> running_;   // the batch taken from posted_; kept for its capacity
  std::vector<Function<void()>> deferred_;
  std::vector<Function<void()>> deferred_running_;
  TimerQueue timers_;

  asio::io_context context_;  // after all that its handlers use while they are destroyed
  asio::executor_work_guard<AsioExecutor> work_;
  KernelTimer kernel_timer_;
  Time kernel_timer_at_ = kNever;  // never later than the earliest timer, between turns
};

}  // namespace sluice::io
