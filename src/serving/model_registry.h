// The models of a replica: what is loaded, in which state, and who is the version to answer.
//
//   UNAVAILABLE -> LOADING -> READY -> UNLOADING -> UNAVAILABLE
//        ^------------/ (reason)
//
// Lookups read an immutable snapshot (a lock is held for the copy of its pointer alone); changes build a new
// one. Loading (and warm-up) runs on the compute pool's loader. One bad model never stops the others; its state and
// reason are shown.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serving/repository.h"
#include "serving/served_model.h"
#include "stats/log.h"

namespace sluice::serving {

enum class ModelState : std::uint8_t { kUnavailable, kLoading, kReady, kUnloading };
std::string_view model_state_name(ModelState state);  // "READY"

struct ModelIndexEntry {
  std::string name, version;
  ModelState state = ModelState::kUnavailable;
  std::string reason;
};

class ModelRegistry {
 public:
  ModelRegistry(EngineSet& engines, io::ComputePool& compute, io::Loop& timer_loop, const Log& log);
  // Waits for a load that runs, at most one warm-up run longer: not on a loop.
  ~ModelRegistry();

  // Any thread. `version` "" = the highest that is ready. kNotFound: no such model or version;
  // kUnavailable: it is there and not ready (names state and reason).
  Result<std::shared_ptr<ServedModel>> find(std::string_view name, std::string_view version) const;
  // Versions that are ready, ascending; empty when none. kNotFound for an unknown model.
  Result<std::vector<std::string>> ready_versions(std::string_view name) const;
  std::vector<std::shared_ptr<ServedModel>> ready_models() const;
  std::vector<ModelIndexEntry> index() const;
  // Every model of the repository is loaded or has failed, and none failed if `strict`. False before load_all()
  // and publish(): a server that listens already is not ready by having nothing yet.
  bool ready(bool strict) const;

  // Loads all of a repository's models; `done` runs on timer_loop once each is ready or has failed;
  // not at all when the registry is drained or destroyed before.
  void load_all(const RepositoryListing& listing, Function<void()> done);
  // Adds one that is loaded already (tests, the simulator).
  void publish(std::shared_ptr<ServedModel> model);
  // Every queue drains; `drained` runs on timer_loop.
  void drain(Function<void()> drained);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::serving
