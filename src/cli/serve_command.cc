#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/version.h"
#include "roles/serve.h"

namespace sluice::cli {
namespace {

const std::map<std::string, LogLevel> kLogLevels = {{"debug", LogLevel::kDebug},
                                                    {"info", LogLevel::kInfo},
                                                    {"warning", LogLevel::kWarning},
                                                    {"error", LogLevel::kError},
                                                    {"off", LogLevel::kOff}};

struct ServeFlags {
  roles::ServeOptions options;
  std::string model, repository, host;
  bool json_log = false;
  std::size_t max_body_mb = 1024, max_tensor_memory_mb = 4096;
};

void add_flags(CLI::App& command, ServeFlags& flags) {
  roles::ServeOptions& options = flags.options;
  command.add_option("model", flags.model, "A model file, or a repository folder");
  command.add_option("--repository,--model-repository,--model-store", flags.repository,
                     "A folder in Triton's layout: <model>/config.pbtxt, <model>/<version>/model.onnx");
  command.add_option("--host,--http-address", flags.host, "The address to bind; all others may call then")
      ->default_str("127.0.0.1");
  command.add_option("--http-port", options.http.port, "HTTP/1.1, HTTP/2 and gRPC; 0 = any free port")
      ->default_val(8000);
  command.add_option("--grpc-port", options.grpc.port, "gRPC; 0 = any free port")->default_val(8001);
  command.add_option("--metrics-port", options.metrics.port, "Prometheus; 0 = any free port")->default_val(8002);
  command.add_option("--exit-timeout-secs", options.exit_timeout_s, "How long a drain may take")
      ->default_val(options.exit_timeout_s);
  command.add_option("--exit-grace-secs", options.exit_grace_s,
                     "After SIGTERM readiness fails this long before the drain begins")
      ->default_val(options.exit_grace_s);
  command.add_option("--loops", options.loops, "Network threads; 0 = one per four cores")->check(CLI::Range(0, 256));
  command.add_option("--compute-threads", options.compute_threads, "Threads that run models; 0 = the cgroup's cores")
      ->check(CLI::Range(0, 4096));
  command.add_flag("!--no-strict-readiness", options.strict_readiness, "Ready although some models failed to load");
  command.add_option("--max-body-mb", flags.max_body_mb, "Largest request body, MiB")->default_val(1024)
      ->check(CLI::Range(1, 16384));
  command.add_option("--max-tensor-memory-mb", flags.max_tensor_memory_mb, "Memory for tensors in flight, MiB")
      ->default_val(4096)->check(CLI::Range(16, 1048576));
  command.add_option("--onnxruntime", options.onnxruntime_library, "The ONNX Runtime library to use")
      ->envname("SLUICE_ONNXRUNTIME");
  command.add_option("--log-level", options.log.level, "debug, info, warning, error or off")
      ->transform(CLI::CheckedTransformer(kLogLevels, CLI::ignore_case))->default_str("info");
  command.add_flag("--log-json", flags.json_log, "Log lines as JSON");
}

int run(ServeFlags& flags) {
  if (flags.model.empty() == flags.repository.empty()) {
    fmt::print(stderr, "sluice serve: give a model file or --repository DIR, one of the two\n");
    return 2;
  }
  roles::ServeOptions& options = flags.options;
  options.source = flags.model.empty() ? flags.repository : flags.model;
  if (!flags.host.empty()) options.http.host = options.grpc.host = options.metrics.host = flags.host;
  options.limits.max_body_bytes = flags.max_body_mb << 20;
  options.max_arena_bytes = flags.max_tensor_memory_mb << 20;
  options.log.format = flags.json_log ? LogFormat::kJson : LogFormat::kText;
  options.version = version();
  return roles::serve(options);
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Serve the models of a folder, or one model file");
  auto flags = std::make_shared<ServeFlags>();
  add_flags(*command, *flags);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace sluice::cli
