#include "serving/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "io/files.h"
#include "wire/config/pbtxt.h"

namespace sluice::serving {
namespace {

constexpr std::string_view kConfigFile = "config.pbtxt";
constexpr std::string_view kDefaultModelFile = "model.onnx";
constexpr std::string_view kOnnxBackend = "onnxruntime";
constexpr std::string_view kOnnxPlatform = "onnxruntime_onnx";
constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{1} << 20;

std::string join(std::string_view folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

// "3" -> 3; nothing for 0, leading zeros and what is not a 63-bit number.
std::optional<std::int64_t> parse_version(std::string_view name) {
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool whole = error == std::errc{} && end == name.data() + name.size();
  return whole && version >= 1 && name[0] != '0' ? std::optional(version) : std::nullopt;
}

using Files = std::vector<io::DirectoryEntry>;

// The numbers of a model's version folders, ascending.
Result<std::vector<std::int64_t>> present_versions(const Files& files) {
  std::vector<std::int64_t> versions;
  for (const io::DirectoryEntry& entry : files) {
    const auto version = parse_version(entry.name);
    if (version && entry.is_directory) versions.push_back(*version);
  }
  if (versions.empty()) {
    return fail(Code::kFailedPrecondition, "there is no version folder (one named 1, 2, ... with the model in it)");
  }
  if (versions.size() > kMaxVersions) {
    return fail(Code::kResourceExhausted,
                fmt::format("there are {} version folders, at most {} are read", versions.size(), kMaxVersions));
  }
  std::ranges::sort(versions);
  return versions;
}

// Those of `present` (ascending) that the policy asks for. A specific version that is not there is a warning.
std::vector<std::int64_t> select_versions(const VersionPolicy& policy, std::vector<std::int64_t> present,
                                          std::vector<std::string>& warnings) {
  if (policy.kind == VersionPolicy::Kind::kAll) return present;
  if (policy.kind == VersionPolicy::Kind::kLatest) {
    const std::size_t surplus = present.size() - std::min<std::size_t>(present.size(), policy.num_versions);
    present.erase(present.begin(), present.begin() + static_cast<std::ptrdiff_t>(surplus));
    return present;
  }
  for (const std::int64_t version : policy.versions) {
    if (std::ranges::binary_search(present, version)) continue;
    warnings.push_back(fmt::format("version_policy.specific: there is no version {}", version));
  }
  std::erase_if(present, [&](std::int64_t version) {
    return std::ranges::find(policy.versions, version) == policy.versions.end();
  });
  return present;
}

// "" for a backend that needs no file of this name.
std::string model_file(const ModelConfig& config) {
  if (!config.default_model_filename.empty()) return config.default_model_filename;
  const bool other_engine = (!config.backend.empty() && config.backend != kOnnxBackend) ||
                            (config.backend.empty() && !config.platform.empty() && config.platform != kOnnxPlatform);
  return other_engine ? "" : std::string(kDefaultModelFile);
}

std::optional<Error> check_model_file(const io::Directory& root, const std::string& path) {
  const auto size = root.size(path);
  if (!size && size.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, fmt::format("'{}' is missing (is the folder half-copied?)", path)};
  }
  if (!size) return size.error();
  if (*size == 0) {
    return Error{Code::kFailedPrecondition, fmt::format("'{}' is empty (is it still being copied?)", path)};
  }
  return std::nullopt;
}

ModelVersionEntry version_entry(const io::Directory& root, const ModelEntry& model, std::int64_t number) {
  ModelVersionEntry entry{.version = fmt::format("{}", number)};
  const std::string file = model_file(model.config.value_or(ModelConfig{}));
  const std::string below = join(model.name, entry.version);
  entry.model_path = join(root.path(), file.empty() ? below : join(below, file));
  if (!file.empty()) entry.error = check_model_file(root, join(below, file));
  return entry;
}

Result<std::optional<ModelConfig>> read_config(const io::Directory& root, const std::string& model,
                                               const Files& files) {
  if (std::ranges::find(files, kConfigFile, &io::DirectoryEntry::name) == files.end()) return std::nullopt;
  const std::string path = join(model, kConfigFile);
  const auto text = root.read(path, kMaxConfigBytes);
  if (!text) return fail(text.error());
  auto config = parse_model_config(*text);
  if (!config) return fail(std::move(config.error()));
  if (!config->name.empty() && config->name != model) {
    return fail(Code::kInvalidArgument,
                fmt::format("{} says name '{}', the folder is '{}'", path, config->name, model));
  }
  config->name = model;
  return std::move(*config);
}

// Files that a configuration names are below the model's folder.
Status check_named_files(const io::Directory& root, const std::string& model, const ModelConfig& config) {
  const auto check = [&](std::string_view field, const std::string& name) -> Status {
    const auto size = root.size(join(model, name));
    if (size) return {};
    return fail(size.error().code, fmt::format("{} '{}': {}", field, name, size.error().message));
  };
  for (const ModelTensorConfig& output : config.outputs) {
    if (output.label_filename.empty()) continue;
    if (Status status = check("output.label_filename", output.label_filename); !status) return status;
  }
  for (const Warmup& warmup : config.warmup) {
    for (const auto& [name, input] : warmup.inputs) {
      if (input.source != WarmupInput::Source::kFile) continue;
      if (Status status = check("model_warmup.inputs.input_data_file", "warmup/" + input.file); !status) return status;
    }
  }
  return {};
}

Status fill_entry(const io::Directory& root, ModelEntry& entry) {
  if (!is_model_name(entry.name)) {
    return fail(Code::kInvalidArgument, "a model's name has 1 to 256 of the characters A-Z a-z 0-9 . _ -");
  }
  const auto files = root.list(entry.name);
  if (!files) return fail(files.error());
  auto config = read_config(root, entry.name, *files);
  if (!config) return fail(std::move(config.error()));
  entry.config = std::move(*config);
  const auto present = present_versions(*files);
  if (!present) return fail(present.error());
  std::vector<std::string> warnings;
  const VersionPolicy policy = entry.config ? entry.config->version_policy : VersionPolicy{};
  const auto selected = select_versions(policy, *present, warnings);
  if (selected.empty()) {
    return fail(Code::kFailedPrecondition,
                fmt::format("none of the {} versions is one that version_policy asks for", present->size()));
  }
  if (entry.config) {
    entry.config->warnings.insert(entry.config->warnings.end(), warnings.begin(), warnings.end());
    if (Status status = check_named_files(root, entry.name, *entry.config); !status) return status;
  }
  for (const std::int64_t version : selected) entry.versions.push_back(version_entry(root, entry, version));
  return {};
}

// One file as a repository. Its name comes from the command line: there is nothing to confine it to.
Result<RepositoryListing> single_file(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const auto root = io::Directory::open(folder);
  if (!root) return fail(root.error());
  const auto listed = root->list();
  if (!listed) return fail(listed.error());
  const auto found = std::ranges::find(*listed, file.filename().string(), &io::DirectoryEntry::name);
  if (found == listed->end()) return fail(Code::kNotFound, fmt::format("there is no file or folder '{}'", path));
  ModelEntry entry{.name = file.stem().string(), .directory = folder};
  if (!is_model_name(entry.name)) {
    return fail(Code::kInvalidArgument,
                fmt::format("the file's name makes a model of the name '{}', which may have 1 to 256 of the characters "
                            "A-Z a-z 0-9 . _ -",
                            entry.name));
  }
  entry.versions.push_back({.version = "1", .model_path = path});
  RepositoryListing listing;
  listing.models.push_back(std::move(entry));
  return listing;
}

// "" when none is named.
std::string_view engine_name(const ModelConfig& config, const std::string& model_path) {
  if (!config.backend.empty()) return config.backend;
  if (config.platform == kOnnxPlatform) return kOnnxBackend;
  if (!config.platform.empty()) return config.platform;
  return model_path.ends_with(".onnx") ? kOnnxBackend : std::string_view();
}

}  // namespace

Result<RepositoryListing> scan_repository(const std::string& path) {
  if (!io::is_directory(path)) return single_file(path);
  const auto root = io::Directory::open(path);
  if (!root) return fail(root.error());
  if (root->exists(std::string(kConfigFile))) {
    return fail(Code::kFailedPrecondition,
                fmt::format("'{}' is a model's folder (it has a {}); name the folder above it", path, kConfigFile));
  }
  const auto listed = root->list();
  if (!listed) return fail(listed.error());
  if (listed->size() > kMaxModels) {
    return fail(Code::kResourceExhausted,
                fmt::format("repository '{}' has {} entries, at most {} are read", path, listed->size(), kMaxModels));
  }
  RepositoryListing listing;
  for (const io::DirectoryEntry& found : *listed) {
    if (!found.is_directory || found.name.starts_with('.')) continue;
    ModelEntry entry{.name = found.name, .directory = join(path, found.name)};
    if (Status status = fill_entry(*root, entry); !status) entry.error = std::move(status.error());
    listing.models.push_back(std::move(entry));
  }
  return listing;
}

void EngineSet::add(std::unique_ptr<engine::Engine> engine) { engines_.push_back(std::move(engine)); }

Result<engine::Engine*> EngineSet::find(const ModelConfig& config, const std::string& model_path) const {
  const std::string_view wanted = engine_name(config, model_path);
  std::string names;
  for (const auto& engine : engines_) {
    if (engine->backend_name() == wanted) return engine.get();
    names += fmt::format("{}{}", names.empty() ? "" : ", ", engine->backend_name());
  }
  if (wanted.empty()) {
    return fail(Code::kUnimplemented, fmt::format("'{}' has no extension that tells its backend, and no backend is "
                                                  "configured; there is: {}",
                                                  model_path, names));
  }
  return fail(Code::kUnimplemented, fmt::format("backend '{}' is not supported, there is: {}", wanted, names));
}

Result<ModelConfig> resolve_config(const ModelEntry& entry, const ModelVersionEntry& version, EngineSet& engines) {
  const auto failed = [&](const Error& error) {
    return fail(error.code, fmt::format("model '{}' version {}: {}", entry.name, version.version, error.message));
  };
  if (entry.error) return failed(*entry.error);
  if (version.error) return failed(*version.error);
  ModelConfig config = entry.config.value_or(ModelConfig{});
  config.name = entry.name;
  const auto engine = engines.find(config, version.model_path);
  if (!engine) return failed(engine.error());
  config.backend = (*engine)->backend_name();
  if (config.platform.empty()) config.platform = config.backend == kOnnxBackend ? kOnnxPlatform : config.backend;
  if (config.default_model_filename.empty() && !model_file(config).empty()) {
    config.default_model_filename = std::filesystem::path(version.model_path).filename().string();
  }
  const auto signature = (*engine)->inspect({.model_path = version.model_path, .config = config});
  if (!signature) return failed(signature.error());
  auto completed = complete_model_config(std::move(config), *signature);
  if (!completed) return failed(completed.error());
  return completed;
}

}  // namespace sluice::serving
