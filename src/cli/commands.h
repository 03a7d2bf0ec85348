// The commands of the binary. Each adds itself to the command line and, when chosen, sets the exit code:
// 0 = done, 1 = it failed (the reason is on standard error), 2 = the command line is wrong.
#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

void add_serve_command(CLI::App& app, int& exit_code);
void add_models_command(CLI::App& app, int& exit_code);
void add_infer_command(CLI::App& app, int& exit_code);
void add_config_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);

}  // namespace sluice::cli
