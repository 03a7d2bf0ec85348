// What is measured of one model version: Triton's statistics and Sluice's histograms per stage.
//
//   received --wire in--> queued --queue--> taken --assembly--> run --compute--> done --wire out--> sent
//
// Any thread; a read is a snapshot. Owned by the served version; shared with metrics by shared_ptr.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "stats/hdr_histogram.h"

namespace sluice {

enum class Stage : std::uint8_t { kWireIn, kQueue, kAssembly, kCompute, kWireOut, kTotal };
inline constexpr std::array<std::string_view, 6> kStageNames = {"wire_in", "queue", "assembly",
                                                                "compute", "wire_out", "total"};

// Why a batch was closed.
enum class CloseReason : std::uint8_t { kFull, kPreferred, kDelay, kInstanceFree, kShapeChange, kDrain };
inline constexpr std::array<std::string_view, 6> kCloseReasonNames = {
    "full", "preferred", "delay", "instance_free", "shape_change", "drain"};

// Why a request failed, as Triton's `reason` label.
enum class FailureReason : std::uint8_t { kRejected, kCanceled, kBackend, kOther };
inline constexpr std::array<std::string_view, 4> kFailureReasonNames = {"REJECTED", "CANCELED", "BACKEND",
                                                                        "OTHER"};

// The instants of one request. Those that were not reached are Time{}.
struct RequestTimes {
  Time received;        // first byte of the body, or the head when there is none
  Time queued;          // parsed, admitted and in the queue
  Time taken;           // its batch was closed and an instance took it
  Time compute_start;   // inputs assembled
  Time compute_end;
  Time encoded;         // the response was handed to the connection
};

struct DurationStat {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};

struct BatchStat {
  std::uint64_t batch_size = 0;
  DurationStat compute_input, compute_infer, compute_output;
};

struct ModelStatsSnapshot {
  std::string name;
  std::string version;
  std::uint64_t last_inference_ms = 0;  // Unix epoch
  std::uint64_t inference_count = 0;    // rows
  std::uint64_t execution_count = 0;    // batches
  DurationStat success, fail, queue, compute_input, compute_infer, compute_output;
  std::array<std::uint64_t, 4> failures{};      // by FailureReason
  std::array<std::uint64_t, 6> close_reasons{}; // by CloseReason
  std::array<std::shared_ptr<const HdrHistogram>, 6> stages;  // ns, by Stage
  std::map<std::uint64_t, BatchStat> batches;   // by batch size in rows
  std::int64_t pending = 0;                     // in the queue now
  double load_seconds = 0;
  std::uint64_t memory_bytes = 0;
};

class ModelStats {
 public:
  ModelStats(std::string name, std::string version);

  // One request: its stages, and as in Triton's statistics one count in each of success, queue and
  // compute_* (a request's share of its batch is the whole batch's time).
  // received and encoded are set: a success is what has its total time.
  void record_success(const RequestTimes& times, std::int64_t wall_ms);
  void record_failure(FailureReason reason, Duration total);
  // One batch that ran: `rows`, and how long its stages took.
  void record_batch(std::uint64_t rows, CloseReason reason, Duration input, Duration infer, Duration output);
  void set_pending(std::int64_t requests) { pending_.store(requests, std::memory_order_relaxed); }
  void set_load(double seconds, std::uint64_t memory_bytes);

  ModelStatsSnapshot snapshot() const;
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }

 private:
  // Counters are relaxed atomics; batches sit behind a mutex that only batches take.
  struct AtomicDuration {
    std::atomic<std::uint64_t> count{0}, ns{0};
    void add(Duration d, std::uint64_t n = 1);
    DurationStat load() const;
  };
  std::string name_, version_;
  std::atomic<std::uint64_t> last_inference_ms_{0}, inference_count_{0}, execution_count_{0};
  AtomicDuration fail_;
  std::array<std::atomic<std::uint64_t>, 4> failures_{};
  std::array<std::atomic<std::uint64_t>, 6> close_reasons_{};
  std::array<std::unique_ptr<AtomicHdrHistogram>, 6> stages_;
  mutable std::mutex batches_mutex_;
  std::map<std::uint64_t, BatchStat> batches_;
  std::atomic<std::int64_t> pending_{0};
  std::atomic<double> load_seconds_{0};
  std::atomic<std::uint64_t> memory_bytes_{0};
};

}  // namespace sluice
