#include "engine/onnx/ort_runtime.h"

#include <fmt/format.h>

#include "io/compute.h"

namespace sluice::engine {
namespace {

// What fails comes back as a status as well, so that a line of its own is for those who look closer.
constexpr OrtLoggingFunction kWriteLog = [](void* param, OrtLoggingLevel severity, const char*, const char*,
                                            const char* place, const char* text) {
  const auto* log = static_cast<const Log*>(param);
  if (!log || !log->enabled(LogLevel::kDebug)) return;
  const std::string level = severity >= ORT_LOGGING_LEVEL_ERROR ? "error" : "warning";
  log->write(LogLevel::kDebug, "onnxruntime", {{"severity", level}, {"text", text}, {"place", place}});
};

OrtCustomThreadHandle create_thread(void*, OrtThreadWorkerFn worker, void* param) {
  auto* thread = io::start_thread("onnxruntime", io::Priority::kNormal, [worker, param] { worker(param); });
  return reinterpret_cast<OrtCustomThreadHandle>(thread);
}

void join_thread(OrtCustomThreadHandle handle) {
  io::join_thread(reinterpret_cast<io::Thread*>(const_cast<OrtCustomHandleType*>(handle)));
}

}  // namespace

OrtRuntime::OrtRuntime(const OrtApiBase& base, const OrtApi& api, const OnnxOptions& options)
    : api_(&api),
      version_(base.GetVersionString()),
      log_(options.log),
      memory_(std::make_unique<OrtMemory>(Arena::Options{
          .name = "onnxruntime", .max_bytes = options.max_workspace_bytes, .max_idle_bytes = options.max_idle_bytes})),
      env_(nullptr, api.ReleaseEnv) {}

Result<std::shared_ptr<OrtRuntime>> OrtRuntime::start(const OnnxOptions& options, int threads) {
  auto base = open_ort_library(options.library);
  if (!base) return fail(base.error());
  const OrtApi* api = (*base)->GetApi(ORT_API_VERSION);
  if (!api) {
    return fail(Code::kFailedPrecondition, fmt::format("ONNX Runtime {} is too old: version 1.{} or later is needed",
                                                       (*base)->GetVersionString(), ORT_API_VERSION));
  }
  std::shared_ptr<OrtRuntime> runtime(new OrtRuntime(**base, *api, options));
  if (auto created = runtime->create_env(threads); !created) return fail(created.error());
  return runtime;
}

Status OrtRuntime::create_env(int threads) {
  OrtThreadingOptions* raw = nullptr;
  if (auto made = check(api_->CreateThreadingOptions(&raw), "threads of ONNX Runtime"); !made) return made;
  const OrtPtr<OrtThreadingOptions> threading(raw, api_->ReleaseThreadingOptions);
  OrtEnv* env = nullptr;
  // Spinning would win a few microseconds for one model and take the cores from the others and from the loops.
  OrtStatus* const steps[] = {
      api_->SetGlobalIntraOpNumThreads(raw, threads),
      api_->SetGlobalInterOpNumThreads(raw, 1),
      api_->SetGlobalSpinControl(raw, 0),
      api_->SetGlobalCustomCreateThreadFn(raw, create_thread),
      api_->SetGlobalCustomJoinThreadFn(raw, join_thread),
      api_->CreateEnvWithCustomLoggerAndGlobalThreadPools(kWriteLog, const_cast<Log*>(log_), ORT_LOGGING_LEVEL_WARNING,
                                                          "sluice", raw, &env),
  };
  env_.reset(env);
  Status result;
  for (OrtStatus* step : steps) {
    if (auto done = check(step, "environment of ONNX Runtime"); !done && result) result = done;
  }
  if (!result) return result;
  // Older builds do not know the variable that open_ort_library() sets.
  if (auto silent = check(api_->DisableTelemetryEvents(env), "telemetry of ONNX Runtime"); !silent) return silent;
  if (auto described = memory_->describe(*api_); !described) return described;
  return check(api_->RegisterAllocator(env, memory_->allocator()), "memory of ONNX Runtime (one engine a process)");
}

Status OrtRuntime::check(OrtStatus* status, std::string_view what, Code refused, Code failed) const {
  if (!status) return {};
  const OrtPtr<OrtStatus> owned(status, api_->ReleaseStatus);
  const Code code = api_->GetErrorCode(status) == ORT_INVALID_ARGUMENT ? refused : failed;
  return fail(code, fmt::format("{}: {}", what, api_->GetErrorMessage(status)));
}

}  // namespace sluice::engine
