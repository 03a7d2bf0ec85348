// Triton's statistics extension over REST: {"model_stats":[...]}, durations as {count, ns}.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "stats/model_stats.h"

namespace sluice::oip {

std::string encode_statistics(std::span<const ModelStatsSnapshot> models);
// The client's side: name, version, counts and durations; no histograms.
Result<std::vector<ModelStatsSnapshot>> parse_statistics(std::string_view json);

}  // namespace sluice::oip
