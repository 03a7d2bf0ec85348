// What both protocols answer from the same state: readiness, metadata, statistics.
#pragma once

#include <string_view>
#include <vector>

#include "api/oip_service.h"
#include "stats/model_stats.h"
#include "wire/oip/repository.h"

namespace sluice::api {

// Not draining, and every model is as it should be (ServerState::strict_readiness).
bool is_ready(const ServerState& state);
// False for a model that is known and not ready; kNotFound for one that is unknown.
Result<bool> is_model_ready(const ServerState& state, std::string_view name, std::string_view version);
// The model's metadata with the versions that are ready.
Result<ModelMetadata> describe_model(const ServerState& state, std::string_view name, std::string_view version);
// Of one model (all its ready versions, or one), or of all when `name` is "".
Result<std::vector<ModelStatsSnapshot>> collect_statistics(const ServerState& state, std::string_view name,
                                                           std::string_view version);

// Every model and version the replica knows, or only those that are ready.
std::vector<oip::IndexEntry> repository_index(const ServerState& state, bool only_ready);

}  // namespace sluice::api
