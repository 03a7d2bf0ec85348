#include "engine/onnx/onnx_engine.h"

#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "engine/onnx/onnx_model.h"
#include "engine/onnx/ort_runtime.h"
#include "engine/onnx/ort_session.h"

namespace sluice::engine {
namespace {

// Triton's parameter of the same name; here it says only whether a run may leave its thread.
constexpr const char* kIntraOpThreads = "intra_op_thread_count";

std::uint64_t heap_bytes() {
  const struct mallinfo2 figures = mallinfo2();
  return figures.uordblks + figures.hblkhd;
}

class OnnxEngine final : public Engine {
 public:
  OnnxEngine(const EngineContext& context, std::shared_ptr<OrtRuntime> runtime, int threads)
      : context_(context), runtime_(std::move(runtime)), threads_(threads) {}

  std::string_view backend_name() const override { return "onnxruntime"; }
  std::string version() const override { return runtime_->version(); }

  Result<ModelSignature> inspect(const LoadRequest& request) override {
    auto session = Session::open(runtime_, request.model_path, SessionUse::kInspect);
    if (!session) return fail(session.error());
    return (*session)->signature();
  }

  Result<std::shared_ptr<BatchModel>> load(const LoadRequest& request) override {
    const std::lock_guard lock(load_mutex_);
    const std::uint64_t before = heap_bytes();
    auto session = Session::open(runtime_, request.model_path, use_of(request.config));
    if (!session) return fail(session.error());
    const std::uint64_t after = heap_bytes();
    // Another model's unload may fall into the same moment; the weights are never less than the file.
    const std::uint64_t weights = std::max(after > before ? after - before : 0, (*session)->file_bytes());
    return make_onnx_model(context_, *std::move(session), request.config, weights);
  }

 private:
  // When the instances alone can keep all threads busy, a run that spreads over them would only pay for the meeting.
  SessionUse use_of(const ModelConfig& config) const {
    const auto asked = config.parameters.find(kIntraOpThreads);
    const bool asked_for_one = asked != config.parameters.end() && asked->second == "1";
    const bool instances_fill = config.instance_count >= static_cast<std::uint32_t>(threads_);
    const bool alone = config.run_inline || asked_for_one || instances_fill;
    return alone ? SessionUse::kOwnThread : SessionUse::kSharedThreads;
  }

  const EngineContext context_;
  const std::shared_ptr<OrtRuntime> runtime_;
  const int threads_;
  std::mutex load_mutex_;  // one load at a time, so that what the heap grows by is one model's
};

}  // namespace

Result<std::unique_ptr<Engine>> make_onnx_engine(const EngineContext& context, const OnnxOptions& options) {
  const int threads = options.threads > 0 ? options.threads : context.compute.threads();
  auto runtime = OrtRuntime::start(options, threads);
  if (!runtime) return fail(runtime.error());
  return std::make_unique<OnnxEngine>(context, *std::move(runtime), threads);
}

}  // namespace sluice::engine
