#include "engine/identity/identity_engine.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "engine/assembly.h"

namespace sluice::engine {
namespace {

// A clock that stands still while somebody computes (the simulator's) must not hold a batch for ever.
constexpr std::uint64_t kMaxClockReadsPerUs = 1000;

void keep_busy(const io::Loop& clock, std::uint64_t busy_us) {
  if (busy_us == 0) return;
  const Time until = clock.now() + std::chrono::microseconds(busy_us);
  for (std::uint64_t reads = 0; reads < busy_us * kMaxClockReadsPerUs && clock.now() < until; ++reads) {
  }
}

Shape with_batch_dimension(const ModelConfig& config, const Shape& dims) {
  Shape shape;
  if (config.max_batch_size > 0) shape.push_back(-1);
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

TensorMetadata metadata_of(const ModelConfig& config, const ModelTensorConfig& tensor) {
  return {tensor.name, tensor.datatype, with_batch_dimension(config, tensor.dims), false};
}

Result<ModelSignature> signature_of(const ModelConfig& config) {
  if (config.inputs.empty()) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("model '{}': backend identity needs its inputs in config.pbtxt; there is none", config.name));
  }
  if (!config.outputs.empty() && config.outputs.size() != config.inputs.size()) {
    return fail(Code::kInvalidArgument,
                fmt::format("model '{}': backend identity needs an output for each input; there are {} inputs and {} "
                            "outputs",
                            config.name, config.inputs.size(), config.outputs.size()));
  }
  ModelSignature signature;
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const ModelTensorConfig& input = config.inputs[i];
    ModelTensorConfig output = input;
    output.name = config.outputs.empty() ? fmt::format("OUTPUT{}", i) : config.outputs[i].name;
    if (!config.outputs.empty() &&
        (config.outputs[i].datatype != input.datatype || config.outputs[i].dims != input.dims)) {
      return fail(Code::kInvalidArgument,
                  fmt::format("model '{}': output '{}' is {} {}; backend identity needs it to be as input '{}': {} {}",
                              config.name, output.name, datatype_name(config.outputs[i].datatype),
                              shape_to_string(config.outputs[i].dims), input.name, datatype_name(input.datatype),
                              shape_to_string(input.dims)));
    }
    signature.inputs.push_back(metadata_of(config, input));
    signature.outputs.push_back(metadata_of(config, output));
  }
  return signature;
}

Result<std::uint64_t> busy_us_of(const ModelConfig& config) {
  const auto found = config.parameters.find("busy_us");
  if (found == config.parameters.end()) return 0;
  const std::string& text = found->second;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMaxBusyUs) {
    return fail(Code::kInvalidArgument,
                fmt::format("model '{}': parameter busy_us is '{}'; expected an integer from 0 to {}", config.name,
                            text, kMaxBusyUs));
  }
  return value;
}

// Inline unless the configuration says otherwise: an echo is cheaper than a change of threads.
bool inline_of(const ModelConfig& config) {
  const auto found = config.parameters.find("sluice.inline");
  return config.run_inline || found == config.parameters.end() || found->second != "false";
}

class IdentityModel final : public BatchModel, public std::enable_shared_from_this<IdentityModel> {
 public:
  IdentityModel(const EngineContext& context, ModelSignature signature, std::uint64_t busy_us,
                std::unique_ptr<io::Executor> instances)
      : context_(context), signature_(std::move(signature)), busy_us_(busy_us), instances_(std::move(instances)) {}

  const ModelSignature& signature() const override { return signature_; }
  MemoryFigures memory() const override { return {}; }
  bool runs_inline() const override { return instances_ == nullptr; }

  void submit(Batch batch, BatchDone done) override {
    if (runs_inline()) return done(run(std::move(batch)));
    instances_->submit([self = shared_from_this(), batch = std::move(batch), done = std::move(done)]() mutable {
      auto output = self->run(std::move(batch));
      self.reset();  // who waits for the answer may unload
      done(std::move(output));
    });
  }

 private:
  Result<BatchOutput> run(Batch batch) {
    auto tensors = assemble_inputs(std::move(batch.items), context_.arena);
    if (!tensors) return fail(tensors.error());
    BatchOutput output;
    output.compute_start = context_.clock.now();
    keep_busy(context_.clock, busy_us_);
    output.outputs = *std::move(tensors);
    output.compute_end = context_.clock.now();
    return output;
  }

  const EngineContext context_;
  const ModelSignature signature_;
  const std::uint64_t busy_us_;
  const std::unique_ptr<io::Executor> instances_;  // null: inline
};

class IdentityEngine final : public Engine {
 public:
  explicit IdentityEngine(const EngineContext& context) : context_(context) {}

  std::string_view backend_name() const override { return "identity"; }
  std::string version() const override { return "1"; }

  Result<ModelSignature> inspect(const LoadRequest& request) override { return signature_of(request.config); }

  Result<std::shared_ptr<BatchModel>> load(const LoadRequest& request) override {
    const ModelConfig& config = request.config;
    auto signature = signature_of(config);
    if (!signature) return fail(signature.error());
    const auto busy_us = busy_us_of(config);
    if (!busy_us) return fail(busy_us.error());
    std::unique_ptr<io::Executor> instances;
    if (!inline_of(config)) instances = context_.compute.slice(config.name, static_cast<int>(config.instance_count));
    return std::make_shared<IdentityModel>(context_, *std::move(signature), *busy_us, std::move(instances));
  }

 private:
  const EngineContext context_;
};

}  // namespace

std::unique_ptr<Engine> make_identity_engine(const EngineContext& context) {
  return std::make_unique<IdentityEngine>(context);
}

}  // namespace sluice::engine
