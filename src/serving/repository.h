// Triton's model repository on disk: which models, which versions, which configuration. Blocking: used by the
// lifecycle on the loader, and by `sluice config check`.
//
//   DIR/<model>/config.pbtxt            optional, completed from the model
//   DIR/<model>/<version>/model.onnx    version: a positive integer without leading zeros
//   DIR/<model>/<labels>.txt
//
// A single file (model.onnx) is a repository of one model named after the file, version 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "model/model_config.h"

namespace sluice::serving {

struct ModelVersionEntry {
  std::string version;      // "3"
  std::string model_path;   // of default_model_filename
};

struct ModelEntry {
  std::string name;
  std::string directory;
  std::optional<ModelConfig> config;    // as parsed; absent when there is no config.pbtxt
  std::vector<ModelVersionEntry> versions;  // those the version policy selects, ascending
  std::optional<Error> error;           // why this one cannot be loaded; others are not concerned
};

struct RepositoryListing {
  std::vector<ModelEntry> models;  // by name
};

// One bad model becomes an entry with an error; a directory that cannot be read fails.
Result<RepositoryListing> scan_repository(const std::string& path);

// Which engine runs it: by `backend`, `platform`, or the file's extension. nullptr: none, with the reason.
class EngineSet {
 public:
  void add(std::unique_ptr<engine::Engine> engine);
  Result<engine::Engine*> find(const ModelConfig& config, const std::string& model_path) const;
  const std::vector<std::unique_ptr<engine::Engine>>& all() const { return engines_; }

 private:
  std::vector<std::unique_ptr<engine::Engine>> engines_;
};

// Parses, inspects and completes the configuration of one version.
Result<ModelConfig> resolve_config(const ModelEntry& entry, const ModelVersionEntry& version, EngineSet& engines);

}  // namespace sluice::serving
