#include "roles/serve.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "api/oip_service.h"
#include "engine/identity/identity_engine.h"
#include "engine/onnx/onnx_engine.h"
#include "io/process.h"
#include "io/runtime.h"
#include "serving/model_registry.h"

namespace sluice::roles {
namespace {

// What one loop runs. Made, used and destroyed on that loop.
struct LoopServers {
  std::unique_ptr<net::Service> oip, metrics;
  std::unique_ptr<net::HttpServer> oip_server, metrics_server;
};

class Replica {
 public:
  explicit Replica(const ServeOptions& options);
  ~Replica();

  Status start();
  int run();  // until stopped

 private:
  Status listen();
  Status listen_on(std::size_t index);
  void on_signal(int signal);
  void begin_drain();
  void on_server_drained();

  ServeOptions options_;
  Log log_;
  Arena arena_;  // outlives the runtime, whose tasks hold blocks of it
  io::Runtime runtime_;
  serving::EngineSet engines_;
  std::unique_ptr<serving::ModelRegistry> models_;
  std::unique_ptr<api::ServerState> state_;
  std::vector<LoopServers> servers_;  // by loop
  // Shutting down; on loop 0.
  std::unique_ptr<io::Timer> shutdown_timer_;
  std::size_t draining_servers_ = 0;
};

io::Runtime::Options runtime_options(const ServeOptions& options) {
  io::Runtime::Options runtime;
  runtime.loops = options.loops;
  runtime.compute.threads = options.compute_threads;
  return runtime;
}

Replica::Replica(const ServeOptions& options)
    : options_(options),
      log_(options.log, io::wall_clock_ms),
      arena_({.name = "host", .max_bytes = options.max_arena_bytes}),
      runtime_(runtime_options(options)),
      servers_(runtime_.loops().size()) {
  const engine::EngineContext context{runtime_.compute(), arena_, runtime_.loop()};
  engines_.add(engine::make_identity_engine(context));
  auto onnx = engine::make_onnx_engine(context, {.library = options_.onnxruntime_library, .log = &log_});
  if (onnx) {
    engines_.add(std::move(*onnx));
  } else {
    log_.warning("ONNX models cannot be served", {{"reason", onnx.error().message}});
  }
  models_ = std::make_unique<serving::ModelRegistry>(engines_, runtime_.compute(), runtime_.loop(), log_);
  ServerMetadata metadata;
  metadata.version = options_.version;
  metadata.extensions = {"binary_tensor_data", "parameters", "statistics", "model_configuration"};
  state_ = std::make_unique<api::ServerState>(*models_, arena_, std::move(metadata), RequestLimits{},
                                              options_.limits.max_body_bytes, log_);
  state_->strict_readiness = options_.strict_readiness;
}

// The loops run on until the runtime goes: a second signal and the exit time-out work to the end.
Replica::~Replica() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    io::run_on(runtime_.loop(i), [this, i] {
      servers_[i].oip_server.reset();
      servers_[i].metrics_server.reset();
      servers_[i] = {};
    });
  }
  models_.reset();  // waits for a load that runs
  io::run_on(runtime_.loop(), [this] { shutdown_timer_.reset(); });
}

Status Replica::listen_on(std::size_t index) {
  io::Loop& loop = runtime_.loop(index);
  LoopServers& servers = servers_[index];
  const io::ListenOptions listen{.share_port = servers_.size() > 1};
  servers.oip = api::make_oip_service(*state_);
  servers.oip_server = std::make_unique<net::HttpServer>(loop, *servers.oip, options_.limits, &log_);
  // The first loop learns which ports were free, the others share them.
  for (io::Endpoint* at : {&options_.http, &options_.grpc}) {
    auto bound = servers.oip_server->listen(*at, listen);
    if (!bound) return std::unexpected(std::move(bound.error()));
    *at = *bound;
  }
  if (index != 0) return {};
  servers.metrics = api::make_metrics_service(*state_);
  servers.metrics_server = std::make_unique<net::HttpServer>(loop, *servers.metrics, options_.limits, &log_);
  auto bound = servers.metrics_server->listen(options_.metrics, {});
  if (!bound) return std::unexpected(std::move(bound.error()));
  options_.metrics = *bound;
  return {};
}

Status Replica::listen() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    Status status;
    io::run_on(runtime_.loop(i), [&] { status = listen_on(i); });
    if (!status) return status;
  }
  return {};
}

Status Replica::start() {
  auto listing = serving::scan_repository(options_.source);
  if (!listing) return std::unexpected(std::move(listing.error()));
  if (listing->models.empty()) {
    return fail(Code::kNotFound,
                fmt::format("'{}' holds no model: expected <model>/<version>/model.onnx", options_.source));
  }
  if (auto status = listen(); !status) return status;
  runtime_.on_signal([this](int signal) { on_signal(signal); });
  fmt::print("listening http={} grpc={} metrics={}\n", io::to_string(options_.http), io::to_string(options_.grpc),
             io::to_string(options_.metrics));
  std::fflush(stdout);
  models_->load_all(*listing, [this] {
    for (const auto& entry : models_->index()) {
      if (entry.state == serving::ModelState::kReady) continue;
      log_.error("model not served", {{"model", entry.name}, {"version", entry.version}, {"reason", entry.reason}});
    }
    log_.info(models_->ready(options_.strict_readiness) ? "ready" : "not ready: some models failed",
              {{"models", std::to_string(models_->ready_models().size())}});
  });
  return {};
}

int Replica::run() {
  runtime_.wait_until_stopped();
  return 0;
}

void Replica::on_signal(int signal) {
  if (signal == SIGHUP) return;  // the terminal went away, the server stays
  if (state_->draining.exchange(true)) {
    log_.warning("second signal: exiting at once");
    std::_Exit(1);
  }
  log_.info("stopping", {{"signal", std::to_string(signal)}});
  const auto grace = std::chrono::seconds(signal == SIGTERM ? options_.exit_grace_s : 0);
  shutdown_timer_ = std::make_unique<io::Timer>(runtime_.loop().timers(), [this] {
    // A timer's own callback must not replace it: the rest comes after it has returned.
    runtime_.loop().post([this] { begin_drain(); });
  });
  shutdown_timer_->arm(runtime_.loop().now() + grace);
}

void Replica::begin_drain() {
  shutdown_timer_ = std::make_unique<io::Timer>(runtime_.loop().timers(), [this] {
    log_.error("drain did not end in time", {{"limit_s", std::to_string(options_.exit_timeout_s)}});
    std::_Exit(1);  // what still runs is cut: it may never end, and nothing that it uses may go before it
  });
  shutdown_timer_->arm(runtime_.loop().now() + std::chrono::seconds(options_.exit_timeout_s));
  draining_servers_ = servers_.size();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    runtime_.loop(i).post([this, i] {
      servers_[i].oip_server->drain([this] { runtime_.loop().post([this] { on_server_drained(); }); });
    });
  }
}

void Replica::on_server_drained() {
  if (--draining_servers_ > 0) return;
  // No connection is left, so nothing new can be queued; what runs without its client still ends.
  models_->drain([this] {
    log_.info("stopped");
    runtime_.stop();
  });
}

}  // namespace

int serve(const ServeOptions& options) {
  Replica replica(options);
  if (auto status = replica.start(); !status) {
    fmt::print(stderr, "sluice serve: {}\n", status.error().message);
    return 1;
  }
  return replica.run();
}

}  // namespace sluice::roles
