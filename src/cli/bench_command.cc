#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <future>
#include <memory>
#include <string>

#include "cli/api_client.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/load_generator.h"
#include "cli/request_builder.h"
#include "net/grpc_client.h"
#include "wire/grpc/infer_reader.h"
#include "wire/oip/json.h"
#include "wire/oip/statistics.h"

namespace sluice::cli {
namespace {

struct BenchFlags {
  std::string model, version;
  std::string url = "127.0.0.1:8000";
  std::string protocol = "grpc";
  RequestFlags request;
  LoadOptions load;
  double duration_s = 10, warmup_s = 1, timeout_s = 30;
  int connections = 0;  // 0 = h2: 4 (at most the concurrency); h1: the concurrency, or 64 in an open loop
  bool json = false, no_progress = false;
};

// One request, ready to be sent again and again: its tensors are shared, not copied.
class Template {
 public:
  static Template make(const BenchFlags& flags, InferRequest request) {
    Template made;
    made.grpc_ = flags.protocol == "grpc";
    if (made.grpc_) {
      made.payload_ = grpc_wire::encode_infer_request(request);
      return made;
    }
    request.binary_output_default = true;
    oip::EncodedJson encoded = oip::encode_infer_request(request, true);
    made.target_ = model_path(flags.model, flags.version) + "/infer";
    made.headers_ = {{"content-type", encoded.json_length ? "application/octet-stream" : "application/json"}};
    if (encoded.json_length) {
      made.headers_.emplace_back("inference-header-content-length", std::to_string(*encoded.json_length));
    }
    made.payload_ = std::move(encoded.payload);
    return made;
  }

  void send(net::HttpClient& client, Time now, Time deadline, LoadGenerator::Done done) const {
    if (grpc_) {
      net::grpc_unary(client, "/inference.GRPCInferenceService/ModelInfer", payload_, now, deadline,
                      [done = std::move(done)](Result<std::string> message) mutable {
                        done(message ? Status() : fail(std::move(message.error())));
                      });
      return;
    }
    client.send({net::Method::kPost, target_, headers_, payload_, deadline},
                [done = std::move(done)](Result<net::ClientResponse> response) mutable {
                  if (!response) return done(fail(std::move(response.error())));
                  if (response->status != 200) {
                    return done(
                        fail(Code::kUnknown, fmt::format("{} {}", response->status, oip::parse_error(response->body))));
                  }
                  done({});
                });
  }

 private:
  bool grpc_ = false;
  std::string target_;
  std::vector<std::pair<std::string, std::string>> headers_;
  Payload payload_;
};

Result<ModelStatsSnapshot> statistics(ApiClient& client, const BenchFlags& flags) {
  auto response = client.call(net::Method::kGet, model_path(flags.model, flags.version) + "/stats");
  if (!response) return std::unexpected(std::move(response.error()));
  auto models = oip::parse_statistics(response->body);
  if (!models) return std::unexpected(std::move(models.error()));
  if (models->empty()) return fail(Code::kNotFound, fmt::format("no statistics of model '{}'", flags.model));
  return std::move(models->back());  // the highest version, which answers
}

net::ClientOptions client_options(const BenchFlags& flags, const io::Endpoint& endpoint) {
  net::ClientOptions options;
  options.endpoint = endpoint;
  options.protocol = flags.protocol == "http" ? net::Protocol::kHttp1 : net::Protocol::kHttp2;
  const bool open_loop = flags.load.rate > 0;
  const int h1 = open_loop ? 64 : flags.load.concurrency;
  const int h2 = open_loop ? 4 : std::min(4, flags.load.concurrency);
  const int chosen = flags.connections > 0 ? flags.connections : options.protocol == net::Protocol::kHttp1 ? h1 : h2;
  options.max_connections = static_cast<std::size_t>(chosen);
  return options;
}

// Waits for the run to end, drawing a bar on a terminal.
void wait_with_progress(std::future<void>& finished, io::Loop& loop, LoadGenerator& generator, bool draw) {
  while (finished.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    if (!draw) continue;
    double share = 0;
    std::uint64_t completed = 0;
    io::run_on(loop, [&] {
      share = generator.progress();
      completed = generator.result().completed;
    });
    fmt::print(stderr, "\r[{:<40}] {:3.0f} %  {} answered", std::string(static_cast<std::size_t>(share * 40), '='),
               share * 100, completed);
    std::fflush(stderr);
  }
  if (draw) fmt::print(stderr, "\r{:80}\r", "");
}

LoadResult run_load(ApiClient& api, const BenchFlags& flags, const io::Endpoint& endpoint, const Template& request) {
  io::Loop& loop = api.loop();
  std::unique_ptr<net::HttpClient> client;
  std::unique_ptr<LoadGenerator> generator;
  std::promise<void> promise;
  auto finished = promise.get_future();
  const auto timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.timeout_s));
  io::run_on(loop, [&] {
    client = std::make_unique<net::HttpClient>(loop, client_options(flags, endpoint));
    generator = std::make_unique<LoadGenerator>(loop, flags.load, [&](LoadGenerator::Done done) {
      request.send(*client, loop.now(), saturating_add(loop.now(), timeout), std::move(done));
    });
    generator->start([&] { promise.set_value(); });
  });
  wait_with_progress(finished, loop, *generator, !flags.no_progress && isatty(2) == 1);
  LoadResult result = generator->result();
  io::run_on(loop, [&] {
    generator.reset();
    client.reset();
  });
  return result;
}

int fail_with(const Error& error) {
  fmt::print(stderr, "sluice bench: {}\n", error.message);
  return error.code == Code::kInvalidArgument ? 2 : 1;
}

int bench(BenchFlags& flags) {
  const auto endpoint = io::parse_endpoint(flags.url);
  if (!endpoint) return fail_with(endpoint.error());
  flags.load.duration = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.duration_s));
  flags.load.warmup = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.warmup_s));
  ApiClient client(*endpoint, net::Protocol::kHttp1, std::chrono::seconds(30));
  const auto metadata = client.model_metadata(flags.model, flags.version);
  if (!metadata) return fail_with(metadata.error());
  auto request = build_request(flags.request, *metadata, client.arena());
  if (!request) return fail_with(request.error());
  request->model_version = flags.version;
  const Template sent = Template::make(flags, std::move(*request));

  const auto before = statistics(client, flags);
  if (!before) return fail_with(before.error());
  BenchReport report;
  report.result = run_load(client, flags, *endpoint, sent);
  const auto after = statistics(client, flags);
  if (!after) return fail_with(after.error());
  report.stages = stages_between(*before, *after);
  report.model = flags.model;
  report.protocol = flags.protocol;
  report.load = flags.load.rate > 0 ? fmt::format("open loop, {:g} requests/s", flags.load.rate)
                                    : fmt::format("closed loop, {} at a time", flags.load.concurrency);
  fmt::print("{}", flags.json ? format_report_json(report) + "\n" : format_report(report));
  return report.result.failed + report.result.dropped == 0 && report.result.completed > 0 ? 0 : 1;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench", "Load a model of a running server and measure it");
  auto flags = std::make_shared<BenchFlags>();
  command->add_option("model", flags->model, "The model's name")->required();
  command->add_option("--version", flags->version, "The model's version");
  command->add_option("--url", flags->url, "The server's address")->capture_default_str();
  command->add_option("--protocol", flags->protocol, "grpc, http (HTTP/1.1) or http2")->capture_default_str()
      ->check(CLI::IsMember({"grpc", "http", "http2"}));
  auto* rate =
      command->add_option("--rate", flags->load.rate, "Open loop: requests per second")->check(CLI::PositiveNumber);
  command->add_option("--concurrency,-c", flags->load.concurrency, "Closed loop: requests at a time")
      ->capture_default_str()->check(CLI::Range(1, 16384))->excludes(rate);
  command->add_option("--duration", flags->duration_s, "Seconds measured")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 86400.0));
  command->add_option("--warmup", flags->warmup_s, "Seconds before")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--requests,-n", flags->load.max_requests, "Stop after so many");
  command->add_flag("!--uniform", flags->load.poisson, "Open loop: even gaps instead of Poisson arrivals");
  command->add_option("--connections", flags->connections, "Connections; default by protocol and load")
      ->check(CLI::Range(1, 4096));
  command->add_option("--timeout", flags->timeout_s, "Seconds a request may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--input,-i", flags->request.inputs, "NAME=VALUE, as in sluice infer; default: random");
  command->add_option("--shape", flags->request.shapes, "NAME=1,3,224,224 where the model leaves it open");
  command->add_option("--output,-o", flags->request.outputs, "An output to ask for; default: all");
  command->add_option("--seed", flags->request.seed, "Of random values")->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON");
  command->add_flag("--no-progress", flags->no_progress, "Draw no progress bar");
  command->callback([flags, &exit_code] { exit_code = bench(*flags); });
}

}  // namespace sluice::cli
