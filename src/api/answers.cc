#include "api/answers.h"

namespace sluice::api {

bool is_ready(const ServerState& state) {
  return !state.draining.load(std::memory_order_relaxed) && state.models.ready(state.strict_readiness);
}

Result<bool> is_model_ready(const ServerState& state, std::string_view name, std::string_view version) {
  const auto model = state.models.find(name, version);
  if (model) return true;
  if (model.error().code == Code::kUnavailable) return false;
  return std::unexpected(model.error());
}

Result<ModelMetadata> describe_model(const ServerState& state, std::string_view name, std::string_view version) {
  auto model = state.models.find(name, version);
  if (!model) return std::unexpected(std::move(model.error()));
  auto versions = state.models.ready_versions(name);
  if (!versions) return std::unexpected(std::move(versions.error()));
  ModelMetadata metadata = (*model)->metadata();
  metadata.versions = std::move(*versions);
  return metadata;
}

Result<std::vector<ModelStatsSnapshot>> collect_statistics(const ServerState& state, std::string_view name,
                                                           std::string_view version) {
  std::vector<ModelStatsSnapshot> statistics;
  if (name.empty()) {
    for (const auto& model : state.models.ready_models()) statistics.push_back(model->stats()->snapshot());
    return statistics;
  }
  if (!version.empty()) {
    auto model = state.models.find(name, version);
    if (!model) return std::unexpected(std::move(model.error()));
    statistics.push_back((*model)->stats()->snapshot());
    return statistics;
  }
  auto versions = state.models.ready_versions(name);
  if (!versions) return std::unexpected(std::move(versions.error()));
  for (const std::string& each : *versions) {
    // One that was unloaded since has no statistics to show.
    if (auto model = state.models.find(name, each)) statistics.push_back((*model)->stats()->snapshot());
  }
  return statistics;
}

std::vector<oip::IndexEntry> repository_index(const ServerState& state, bool only_ready) {
  std::vector<oip::IndexEntry> entries;
  for (auto& entry : state.models.index()) {
    if (only_ready && entry.state != serving::ModelState::kReady) continue;
    entries.push_back({std::move(entry.name), std::move(entry.version),
                       std::string(serving::model_state_name(entry.state)), std::move(entry.reason)});
  }
  return entries;
}

}  // namespace sluice::api
