#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/api_client.h"
#include "cli/commands.h"
#include "wire/oip/repository.h"

namespace sluice::cli {
namespace {

std::string describe(const std::vector<TensorMetadata>& tensors) {
  std::string out;
  for (const auto& tensor : tensors) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}{}", tensor.name, datatype_name(tensor.datatype), shape_to_string(tensor.shape));
  }
  return out;
}

int list_models(const std::string& url) {
  const auto endpoint = io::parse_endpoint(url);
  if (!endpoint) {
    fmt::print(stderr, "sluice models: {}\n", endpoint.error().message);
    return 2;
  }
  ApiClient client(*endpoint, net::Protocol::kHttp1, std::chrono::seconds(10));
  const auto response = client.call(net::Method::kPost, "/v2/repository/index");
  if (!response) {
    fmt::print(stderr, "sluice models: {}\n", response.error().message);
    return 1;
  }
  const auto index = oip::parse_repository_index(response->body);
  if (!index) {
    fmt::print(stderr, "sluice models: {}\n", index.error().message);
    return 1;
  }
  std::size_t width = 5;
  for (const auto& entry : *index) width = std::max(width, entry.name.size());
  fmt::print("{:<{}}  {:<7}  {:<11}  {}\n", "MODEL", width, "VERSION", "STATE", "INPUTS -> OUTPUTS");
  for (const auto& entry : *index) {
    std::string detail = entry.reason;
    if (entry.state == "READY") {
      if (const auto metadata = client.model_metadata(entry.name, entry.version)) {
        detail = describe(metadata->inputs) + " -> " + describe(metadata->outputs);
      }
    }
    fmt::print("{:<{}}  {:<7}  {:<11}  {}\n", entry.name, width, entry.version, entry.state, detail);
  }
  return 0;
}

}  // namespace

void add_models_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("models", "List the models of a running server");
  auto url = std::make_shared<std::string>("127.0.0.1:8000");
  command->add_option("--url", *url, "The server's HTTP address")->capture_default_str();
  command->callback([url, &exit_code] { exit_code = list_models(*url); });
}

}  // namespace sluice::cli
