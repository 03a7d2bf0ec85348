// inference.ModelStatisticsResponse, unframed.
#pragma once

#include <span>
#include <string>

#include "stats/model_stats.h"

namespace sluice::grpc_wire {

std::string encode_model_statistics(std::span<const ModelStatsSnapshot> models);

}  // namespace sluice::grpc_wire
