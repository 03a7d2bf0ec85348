// Triton's model repository on disk: which models, which versions, which configuration. Blocking: used by the
// lifecycle on the loader, and by `sluice config check`.
//
//   DIR/<model>/config.pbtxt            optional, completed from the model
//   DIR/<model>/<version>/model.onnx    version: a positive integer without leading zeros
//   DIR/<model>/<labels>.txt
//
// A single file (model.onnx) is a repository of one model named after the file, version 1.
//
// Every path is resolved below the repository; a link that leads out of it is refused. Names that begin with
// a dot, and files beside the models, are passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "model/model_config.h"

namespace sluice::serving {

struct ModelVersionEntry {
  std::string version;      // "3"
  std::string model_path;   // of default_model_filename; the version's folder for a backend that needs no file
  std::optional<Error> error;  // why this version cannot be loaded: its file is missing, empty or leads out
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

inline constexpr std::size_t kMaxModels = 10'000;
inline constexpr std::size_t kMaxVersions = 10'000;  // folders of one model

// One bad model becomes an entry with an error; a directory that cannot be read, or has more than kMaxModels
// entries, fails.
Result<RepositoryListing> scan_repository(const std::string& path);

// The engines of this build. find(): which one runs a model, by `backend`, else `platform`, else the file's
// extension; kUnimplemented names what was asked for and what there is.
class EngineSet {
 public:
  void add(std::unique_ptr<engine::Engine> engine);
  Result<engine::Engine*> find(const ModelConfig& config, const std::string& model_path) const;
  const std::vector<std::unique_ptr<engine::Engine>>& all() const { return engines_; }

 private:
  std::vector<std::unique_ptr<engine::Engine>> engines_;
};

// The configuration of one version: as parsed, with the engine's names, completed from the model's signature.
// The error of the entry or the version, if it has one; errors name model and version.
Result<ModelConfig> resolve_config(const ModelEntry& entry, const ModelVersionEntry& version, EngineSet& engines);

}  // namespace sluice::serving
