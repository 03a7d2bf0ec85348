// Sends requests in an open loop (arrivals at a rate, whatever the server does) or a closed one (so many at a
// time), and measures each from its intended start, so that a server that stalls is not let off the requests
// that would have come meanwhile (coordinated omission).
//
// Thread: one loop. Bounded: in time, in count, and in requests outstanding; what would exceed the latter is
// counted as dropped.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "base/function.h"
#include "base/random.h"
#include "io/loop.h"
#include "stats/hdr_histogram.h"

namespace sluice::cli {

struct LoadOptions {
  double rate = 0;          // requests per second; 0 = closed loop
  int concurrency = 1;      // closed loop: requests outstanding
  Duration warmup = std::chrono::seconds(1);    // not measured
  Duration duration = std::chrono::seconds(10);
  std::uint64_t max_requests = 0;  // measured ones; 0 = until the duration is over
  std::size_t max_outstanding = 16384;
  bool poisson = true;      // open loop: exponential gaps; false = even ones
  std::uint64_t seed = 1;
};

struct LoadResult {
  HdrHistogram latency_ns{{.lowest = 1000, .highest = 600'000'000'000, .significant_digits = 3}};
  std::uint64_t completed = 0, failed = 0, dropped = 0;
  std::map<std::string, std::uint64_t> errors;  // by text
  Duration measured{0};                         // from the end of the warm-up to the last answer
};

class LoadGenerator {
 public:
  using Done = Function<void(Status)>;
  // `send` starts one request; its Done is called exactly once, on the loop, never inside of `send`.
  LoadGenerator(io::Loop& loop, const LoadOptions& options, Function<void(Done)> send);

  // `finished` is called once, on the loop.
  void start(Function<void()> finished);
  const LoadResult& result() const { return result_; }
  double progress() const;  // 0..1; on the loop

 private:
  void send_due();
  void send_one(Time intended);
  void on_answer(Time intended, const Status& status);
  bool over(Time now) const;
  void finish_if_over();

  io::Loop& loop_;
  LoadOptions options_;
  Function<void(Done)> send_;
  Function<void()> finished_;
  Random random_;
  io::Timer timer_;
  LoadResult result_;
  Time begin_{}, measure_from_{}, end_{}, next_{};
  std::uint64_t measured_sent_ = 0;
  std::size_t outstanding_ = 0;
};

}  // namespace sluice::cli
