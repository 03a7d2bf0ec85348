// What happened to each request, as seen where it was sent and where it ran; and what was found wrong. The
// checkers read it, the digest of a run is made of it.
//
//   sent --> accepted --> started --> ran --> answered      (each at most once; the last exactly once)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "scenario.h"

namespace sluice::sim {

// Violations of what must always hold. Keeps the first few, counts all.
class Findings {
 public:
  void add(std::string_view checker, std::string text);
  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::uint64_t count_ = 0;
};

enum class Run : std::uint8_t { kNever, kRunning, kSucceeded, kFailed };

struct RequestRecord {
  RequestPlan plan;
  Time sent{};                // by the client
  Time accepted{};            // the server saw its head, or it entered the queue; Time{} = never
  Time queue_deadline = kNever;  // as the server knows it, where that can be told
  bool queue_was_full = false;   // when it entered
  Time started{};
  int runs = 0;
  Run run = Run::kNever;
  int answers = 0;
  Time ended{};
  Code code = Code::kUnknown;
  std::string message;
  Time aborted{};             // the server was told that its client is gone
  bool given_up = false;      // the client cancelled it, or went away on purpose
  Time given_up_at{};
  bool broken = false;        // the scenario broke its connection
};

class Ledger {
 public:
  RequestRecord& add(RequestPlan plan);
  RequestRecord& operator[](std::uint64_t id) { return records_.at(id); }
  RequestRecord* find(std::uint64_t id);
  const std::map<std::uint64_t, RequestRecord>& records() const { return records_; }
  std::map<std::uint64_t, RequestRecord>& records() { return records_; }

  // The client's end of a request: the status of its one answer.
  void answer(std::uint64_t id, const Status& status, Time now);
  std::uint64_t open() const { return open_; }

  Findings findings;

 private:
  std::map<std::uint64_t, RequestRecord> records_;
  std::uint64_t open_ = 0;  // sent and not answered
};

}  // namespace sluice::sim
