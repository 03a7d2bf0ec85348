#include "ledger.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::sim {
namespace {

constexpr std::size_t kMaxTexts = 10;

}  // namespace

void Findings::add(std::string_view checker, std::string text) {
  if (++count_ <= kMaxTexts) texts_.push_back(fmt::format("{}: {}", checker, text));
}

RequestRecord& Ledger::add(RequestPlan plan) {
  const std::uint64_t id = plan.id;
  RequestRecord& record = records_[id];
  record.plan = std::move(plan);
  ++open_;
  return record;
}

RequestRecord* Ledger::find(std::uint64_t id) {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second;
}

void Ledger::answer(std::uint64_t id, const Status& status, Time now) {
  RequestRecord& record = records_.at(id);
  if (++record.answers > 1) {
    findings.add("one answer", fmt::format("request {} is answered a second time, with {}", id,
                                           code_name(status ? Code::kOk : status.error().code)));
    return;
  }
  --open_;
  record.ended = now;
  record.code = status ? Code::kOk : status.error().code;
  if (!status) record.message = status.error().message;
}

}  // namespace sluice::sim
