// The simulation's command line.
//
//   sluice_sim --seed 7                      replays one seed and prints its scenario and history digest
//   sluice_sim --seeds 1..500                runs many; prints what fails, with its seed
//   --front direct|network                   where requests enter (network)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "simulation.h"

namespace sluice::sim {
namespace {

// Of the run in progress, for whoever reads why the process aborted.
char running[64];

void on_abort(int) {
  const std::string_view text(running);
  [[maybe_unused]] const auto written = write(2, text.data(), text.size());
}

struct Range {
  std::uint64_t first = 1, last = 1;
};

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse_range(std::string_view text, Range& range) {
  const auto dots = text.find("..");
  return dots != std::string_view::npos && parse_number(text.substr(0, dots), range.first) &&
         parse_number(text.substr(dots + 2), range.last) && range.first <= range.last;
}

// The number of seeds that failed.
int run_seeds(const Range& range, Front front, bool verbose) {
  io::ComputePool compute({.threads = 1});
  int failed = 0;
  RunReport total;
  for (std::uint64_t seed = range.first; seed <= range.last; ++seed) {
    const Scenario scenario = draw_scenario(seed, front);
    const char* front_name = front == Front::kDirect ? "direct" : "network";
    fmt::format_to_n(running, sizeof running - 1, "sluice_sim: aborted in --front {} --seed {}\n", front_name, seed);
    if (verbose) fmt::print("{}\n", describe(scenario));
    const RunReport report = run_scenario(scenario, compute);
    if (verbose) {
      fmt::print("digest {:016x}, {} events, {} batches\n", report.digest, report.events, report.batches);
    }
    for (std::size_t i = 0; i < report.answers.size(); ++i) total.answers[i] += report.answers[i];
    total.events += report.events;
    total.digest = total.digest * 31 + report.digest;
    if (report.finding_count == 0) continue;
    ++failed;
    fmt::print("FAILED sluice_sim --front {} --seed {}: {} findings\n", front_name, seed, report.finding_count);
    for (const std::string& finding : report.findings) fmt::print("  {}\n", finding);
  }
  fmt::print("{} seeds, {} failed; {} events, digest {:016x}; answers: {}\n", range.last - range.first + 1, failed,
             total.events, total.digest, total.answers_text());
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Sluice in virtual time, replayed from a seed");
  std::uint64_t seed = 0;
  std::string seeds, front_name = "network";
  auto* one = app.add_option("--seed", seed, "Run this seed and describe it");
  app.add_option("--seeds", seeds, "Run the seeds A..B")->excludes(one);
  app.add_option("--front", front_name, "Where requests enter")->check(CLI::IsMember({"direct", "network"}));
  CLI11_PARSE(app, argc, argv);
  Range range{seed, seed};
  if (one->count() == 0 && !parse_range(seeds, range)) {
    fmt::print(stderr, "sluice_sim: '{}' is not a range of seeds, expected A..B\n", seeds);
    return 2;
  }
  std::signal(SIGABRT, on_abort);
  const Front front = front_name == "direct" ? Front::kDirect : Front::kNetwork;
  return run_seeds(range, front, one->count() > 0) == 0 ? 0 : 1;
}

}  // namespace sluice::sim

int main(int argc, char** argv) { return sluice::sim::main(argc, argv); }
