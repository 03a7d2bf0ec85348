#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "engine/identity/identity_engine.h"
#include "engine/onnx/onnx_engine.h"
#include "io/runtime.h"
#include "serving/repository.h"
#include "wire/config/pbtxt.h"

namespace sluice::cli {
namespace {

struct ConfigFlags {
  std::string directory, onnxruntime;
  bool print = false;
};

void report(const std::string& model, const std::string& version, const std::string& line) {
  fmt::print("{}{}{}: {}\n", model, version.empty() ? "" : "/", version, line);
}

// The number of versions that cannot be served.
int check_model(const serving::ModelEntry& entry, serving::EngineSet& engines, bool print) {
  if (entry.error) {
    report(entry.name, "", "error: " + entry.error->message);
    return 1;
  }
  int bad = 0;
  for (const auto& version : entry.versions) {
    const auto config = serving::resolve_config(entry, version, engines);
    if (!config) {
      report(entry.name, version.version, "error: " + config.error().message);
      ++bad;
      continue;
    }
    for (const auto& warning : config->warnings) report(entry.name, version.version, "warning: " + warning);
    report(entry.name, version.version, "ok");
    if (print) fmt::print("{}\n", format_model_config(*config));
  }
  return bad;
}

int check(const ConfigFlags& flags) {
  const auto listing = serving::scan_repository(flags.directory);
  if (!listing) {
    fmt::print(stderr, "sluice config check: {}\n", listing.error().message);
    return 1;
  }
  io::Runtime::Options options;
  options.loops = 1;
  io::Runtime runtime(options);
  Arena arena({.name = "check"});
  const engine::EngineContext context{runtime.compute(), arena, runtime.loop()};
  serving::EngineSet engines;
  engines.add(engine::make_identity_engine(context));
  auto onnx = engine::make_onnx_engine(context, {.library = flags.onnxruntime});
  if (!onnx) {
    fmt::print(stderr, "sluice config check: {}\n", onnx.error().message);
    return 1;
  }
  engines.add(std::move(*onnx));
  int bad = 0;
  for (const auto& entry : listing->models) bad += check_model(entry, engines, flags.print);
  fmt::print("{} models, {} versions that cannot be served\n", listing->models.size(), bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("config", "Work with model configurations");
  command->require_subcommand(1);
  CLI::App* check_command = command->add_subcommand("check", "Check a repository without serving it");
  auto flags = std::make_shared<ConfigFlags>();
  check_command->add_option("directory", flags->directory, "The repository")->required();
  check_command->add_flag("--print", flags->print, "Print each completed config.pbtxt");
  check_command->add_option("--onnxruntime", flags->onnxruntime, "The ONNX Runtime library to use")
      ->envname("SLUICE_ONNXRUNTIME");
  check_command->callback([flags, &exit_code] { exit_code = check(*flags); });
}

}  // namespace sluice::cli
