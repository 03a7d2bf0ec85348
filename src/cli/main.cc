#include <CLI/CLI.hpp>

#include <string>

#include "cli/commands.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  CLI::App app("Sluice turns trained model files into network services", "sluice");
  app.set_version_flag("--version", "sluice " + std::string(sluice::cli::version()));
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);

  int exit_code = 0;
  sluice::cli::add_serve_command(app, exit_code);
  sluice::cli::add_models_command(app, exit_code);
  sluice::cli::add_infer_command(app, exit_code);
  sluice::cli::add_config_command(app, exit_code);
  sluice::cli::add_bench_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}
