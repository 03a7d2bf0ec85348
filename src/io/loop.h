// The runtime seam: a loop is one thread's world of time, timers, tasks and streams. There are two
// implementations: AsioLoop (real, epoll) and SimLoop (io/sim: virtual time, replayed from a seed).
// Everything above io is written against this page.
//
// Thread: all functions are for the loop's own thread, except post() and now(), which any may call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/function.h"
#include "base/time.h"
#include "io/stream.h"
#include "io/timer_queue.h"

namespace sluice::io {

// An IP address or a host name, and a port (0 = any free one).
struct Endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
std::string to_string(const Endpoint& endpoint);            // "127.0.0.1:8000", "[::1]:8000"
Result<Endpoint> parse_endpoint(std::string_view text);     // "host:port"; names what is wrong

struct ListenOptions {
  int backlog = 1024;
  // Several loops listen on one port and the kernel spreads the connections (SO_REUSEPORT).
  bool share_port = false;
};

// Accepts until destroyed. A failure to accept (out of descriptors) is counted and retried after 100 ms.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual Endpoint local() const = 0;  // with the port that was really taken
  virtual std::uint64_t accept_failures() const { return 0; }
};

class Loop {
 public:
  using AcceptHandler = Function<void(std::unique_ptr<Stream>)>;
  using ConnectHandler = Function<void(Result<std::unique_ptr<Stream>>)>;

  virtual ~Loop() = default;

  virtual Time now() const = 0;             // any thread; never goes back
  virtual std::int64_t wall_ms() const = 0; // any thread; ms since the Unix epoch, may jump

  // Runs `task` on the loop, in the order of the posts of one thread. Any thread. Tasks still queued
  // when the loop ends are destroyed, not run.
  virtual void post(Function<void()> task) = 0;
  virtual bool on_loop_thread() const = 0;

  // Runs `task` once what is being handled now is done, before the loop waits again: connections
  // coalesce their writes with it.
  virtual void defer(Function<void()> task) = 0;

  virtual TimerQueue& timers() = 0;

  // kUnavailable names the address and says "already in use" when it is; kInvalidArgument for an
  // address that cannot be parsed.
  virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const ListenOptions& options,
                                                   AcceptHandler on_accept) = 0;
  // Calls `done` exactly once, never within this call, at the latest at `deadline` (kDeadlineExceeded).
  virtual void connect(const Endpoint& to, Time deadline, ConnectHandler done) = 0;
};

}  // namespace sluice::io
