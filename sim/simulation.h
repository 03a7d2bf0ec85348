// One run: a world is built from the scenario, requests are sent at their times while faults happen, faults
// heal, probes follow, everything is closed, and the checkers look at what is left.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/compute.h"
#include "scenario.h"

namespace sluice::sim {

struct RunReport {
  std::vector<std::string> findings;  // the first few
  std::uint64_t finding_count = 0;
  std::uint64_t digest = 0;           // of the whole history: events, bytes, answers
  std::uint64_t events = 0;
  std::uint64_t batches = 0;
  std::array<std::uint64_t, 17> answers{};  // by code

  std::uint64_t answers_of(Code code) const { return answers[static_cast<std::size_t>(code)]; }
  std::string answers_text() const;  // "OK 97, CANCELLED 3"
};

// `compute` is only there to be handed on; nothing runs on it.
RunReport run_scenario(const Scenario& scenario, io::ComputePool& compute);

}  // namespace sluice::sim
