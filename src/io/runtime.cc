#include "io/runtime.h"

#include <sys/random.h>

#include <future>
#include <utility>

#include "base/check.h"

namespace sluice::io {

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
