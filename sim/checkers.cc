#include "checkers.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::sim {
namespace {

// What posts and timers may take.
constexpr Duration kPromptly = std::chrono::microseconds(20);

bool is_oversize(const Scenario& scenario, const RequestPlan& plan) {
  return scenario.model.max_batch_size > 0 && plan.rows > scenario.model.max_batch_size;
}

// A network run in which connections break by themselves: any request may lose its answer.
bool is_flaky(const Scenario& scenario) {
  return scenario.front == Front::kNetwork && scenario.network.reset_chance > 0;
}

bool has_time_limit(const Scenario& scenario, const RequestPlan& plan) {
  return plan.timeout || plan.queue_timeout || scenario.model.default_timeout > Duration{0};
}

// As binary tensors; in JSON a value takes up to 20 bytes.
bool may_exceed_body_limit(const Scenario& scenario, const RequestPlan& plan) {
  return static_cast<std::size_t>(plan.rows * (plan.width + 1)) * 20 + 1000 > scenario.max_body_bytes;
}

bool is_error_explained(const Scenario& scenario, const RequestRecord& record, Time drain_began) {
  const bool draining = drain_began != Time{} && record.ended >= drain_began;
  switch (record.code) {
    case Code::kInvalidArgument: return is_oversize(scenario, record.plan);
    case Code::kNotFound: return record.plan.unknown_model;
    case Code::kResourceExhausted:
      if (may_exceed_body_limit(scenario, record.plan)) return true;
      return scenario.front == Front::kDirect ? record.queue_was_full : scenario.model.max_queue_size < 4096;
    case Code::kDeadlineExceeded:
      return has_time_limit(scenario, record.plan) || record.plan.protocol == Protocol::kStaller;
    case Code::kCancelled: return record.given_up;
    case Code::kInternal: return record.run == Run::kFailed;
    case Code::kUnavailable: return record.broken || is_flaky(scenario) || draining;
    default: return false;
  }
}

// May a request end without its result although its batch had it?
bool may_miss_its_result(const Scenario& scenario, const RequestRecord& record) {
  if (record.given_up || record.broken || is_flaky(scenario)) return true;
  // Over the network the client's own clock runs while the answer travels.
  return scenario.front == Front::kNetwork && record.code == Code::kDeadlineExceeded && record.plan.timeout.has_value();
}

}  // namespace

void check_answers(Ledger& ledger) {
  for (const auto& [id, record] : ledger.records()) {
    if (record.answers == 1) continue;
    ledger.findings.add("one answer", fmt::format("request {} has {} answers", id, record.answers));
  }
}

void check_reasons(const Scenario& scenario, Ledger& ledger, Time drain_began) {
  for (const auto& [id, record] : ledger.records()) {
    if (record.answers != 1) continue;
    const auto report = [&](std::string_view what) {
      ledger.findings.add("reasons", fmt::format("request {} ended with {} ('{}'): {}", id, code_name(record.code),
                                                 record.message, what));
    };
    if (record.code == Code::kOk) {
      if (record.run != Run::kSucceeded) report("without a batch that succeeded");
      continue;
    }
    if (!is_error_explained(scenario, record, drain_began)) report("nothing in the scenario explains it");
    if (record.run == Run::kSucceeded && !may_miss_its_result(scenario, record)) report("its batch succeeded");
    if (record.plan.probe) report("a probe, after the faults have healed");
    // What was let in before the drain is answered.
    const bool let_in = record.accepted != Time{} && drain_began != Time{} && record.accepted < drain_began;
    if (record.code == Code::kUnavailable && let_in && !record.broken && !is_flaky(scenario)) {
      report("it was accepted before the drain");
    }
  }
}

void check_prompt_ends(const Scenario& scenario, Ledger& ledger) {
  if (scenario.front != Front::kDirect) return;
  for (const auto& [id, record] : ledger.records()) {
    if (record.answers != 1 || record.runs > 0 || record.accepted == Time{}) continue;
    const Time due = std::min(record.given_up ? record.given_up_at : kNever, record.queue_deadline);
    if (due != kNever && record.ended > due + kPromptly) {
      ledger.findings.add("prompt ends", fmt::format("request {} was cancelled or expired, never ran, and ended {} us "
                                                     "later", id, to_ns(record.ended - due) / 1000));
    }
  }
}

void check_statistics(const Scenario& scenario, Ledger& ledger, const ModelStatsSnapshot& stats,
                      std::uint64_t batches, std::uint64_t rows) {
  const auto expect = [&](std::string_view what, std::uint64_t counted, std::uint64_t happened) {
    if (counted == happened) return;
    ledger.findings.add("statistics", fmt::format("{}: {} counted, {} happened", what, counted, happened));
  };
  expect("batches", stats.execution_count, batches);
  expect("rows", stats.inference_count, rows);
  expect("pending requests", static_cast<std::uint64_t>(stats.pending), 0);
  if (scenario.front != Front::kDirect) return;
  // Here each request's end is the queue's, and none is hidden by a client that left.
  const auto ended_with = [&](std::initializer_list<Code> codes) {
    return static_cast<std::uint64_t>(std::ranges::count_if(ledger.records(), [&](const auto& entry) {
      return entry.second.accepted != Time{} && std::ranges::find(codes, entry.second.code) != codes.end();
    }));
  };
  const auto failures = [&](FailureReason reason) { return stats.failures[static_cast<std::size_t>(reason)]; };
  expect("cancelled requests", failures(FailureReason::kCanceled), ended_with({Code::kCancelled}));
  expect("failed by the model", failures(FailureReason::kBackend), ended_with({Code::kInternal}));
  expect("rejected requests", failures(FailureReason::kRejected),
         ended_with({Code::kResourceExhausted, Code::kDeadlineExceeded, Code::kUnavailable}));
}

void check_leftovers(Ledger& ledger, const Leftovers& leftovers) {
  const auto expect_none = [&](std::string_view what, std::size_t count) {
    if (count > 0) ledger.findings.add("leaks", fmt::format("{} {}", count, what));
  };
  expect_none("requests still wait", leftovers.waiting);
  expect_none("requests are still in flight", leftovers.in_flight);
  expect_none("blocks of the server's arena are still referenced", leftovers.server_blocks);
  expect_none("blocks of the clients' arena are still referenced", leftovers.client_blocks);
  expect_none("streams are still open", leftovers.streams);
}

}  // namespace sluice::sim
