#include "engine/onnx/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "engine/assembly.h"
#include "engine/onnx/ort_tensor.h"

namespace sluice::engine {
namespace {

std::vector<std::string> names_of(const std::vector<TensorMetadata>& tensors) {
  std::vector<std::string> names;
  for (const TensorMetadata& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::unexpected<Error> fail_at(std::string_view kind, const std::string& name, const Error& error) {
  return fail(error.code, fmt::format("{} '{}': {}", kind, name, error.message));
}

class OnnxModel final : public BatchModel, public std::enable_shared_from_this<OnnxModel> {
 public:
  OnnxModel(const EngineContext& context, std::shared_ptr<Session> session, const ModelConfig& config,
            std::uint64_t weights_bytes)
      : context_(context),
        session_(std::move(session)),
        inputs_(names_of(signature().inputs)),
        outputs_(names_of(signature().outputs)),
        batched_(config.max_batch_size > 0),
        weights_bytes_(weights_bytes) {
    if (!config.run_inline) {
      instances_ = context.compute.slice(config.name, static_cast<int>(config.instance_count));
    }
  }

  const ModelSignature& signature() const override { return session_->signature(); }
  bool runs_inline() const override { return instances_ == nullptr; }
  MemoryFigures memory() const override {
    return {.weights_bytes = weights_bytes_, .workspace_bytes = peak_run_bytes_.load(std::memory_order_relaxed)};
  }

  void submit(Batch batch, BatchDone done) override {
    if (runs_inline()) return done(run(std::move(batch)));
    instances_->submit([self = shared_from_this(), batch = std::move(batch), done = std::move(done)]() mutable {
      auto output = self->run(std::move(batch));
      self.reset();  // who waits for the answer may unload
      done(std::move(output));
    });
  }

 private:
  // What OrtRun takes and gives: names and values of the inputs that are there and of the outputs that are wanted.
  struct Call {
    std::vector<const char*> input_names, output_names;
    std::vector<OrtValuePtr> inputs, outputs;
    std::vector<std::size_t> output_ports;
  };

  Result<BatchOutput> run(Batch batch);
  Status bind_inputs(std::vector<Tensor>& tensors, Call& call) const;
  void choose_outputs(const std::vector<bool>& wanted, Call& call) const;
  Status run_session(Call& call);
  Result<Tensor> take_output(std::size_t port, OrtValuePtr value, const Batch& batch,
                             const std::vector<Tensor>& inputs) const;

  const OrtRuntime& runtime() const { return session_->runtime(); }

  const EngineContext context_;
  const std::shared_ptr<Session> session_;
  const std::vector<std::string> inputs_, outputs_;
  const bool batched_;
  const std::uint64_t weights_bytes_;
  std::unique_ptr<io::Executor> instances_;  // null: inline
  std::atomic<std::uint64_t> peak_run_bytes_{0};
};

Result<BatchOutput> OnnxModel::run(Batch batch) {
  auto tensors = assemble_inputs(std::move(batch.items), context_.arena);
  if (!tensors) return fail(tensors.error());
  Call call;
  if (auto bound = bind_inputs(*tensors, call); !bound) return fail(bound.error());
  choose_outputs(batch.wanted, call);

  BatchOutput result;
  result.compute_start = context_.clock.now();
  if (auto ran = run_session(call); !ran) return fail(ran.error());
  result.compute_end = context_.clock.now();
  result.outputs.resize(outputs_.size());
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    auto output = take_output(call.output_ports[i], std::move(call.outputs[i]), batch, *tensors);
    if (!output) return fail(output.error());
    result.outputs[call.output_ports[i]] = *std::move(output);
  }
  return result;
}

Status OnnxModel::bind_inputs(std::vector<Tensor>& tensors, Call& call) const {
  if (tensors.size() != inputs_.size()) {
    return fail(Code::kInternal, fmt::format("{} inputs given; the model has {}", tensors.size(), inputs_.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i];
    if (tensor.datatype == DataType::kInvalid) continue;  // optional and absent
    auto value = make_ort_value(runtime(), context_.arena, tensor);
    if (!value) return fail_at("input", inputs_[i], value.error());
    call.input_names.push_back(inputs_[i].c_str());
    call.inputs.push_back(*std::move(value));
  }
  return {};
}

void OnnxModel::choose_outputs(const std::vector<bool>& wanted, Call& call) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!wanted.empty() && !wanted[i]) continue;
    call.output_names.push_back(outputs_[i].c_str());
    call.output_ports.push_back(i);
  }
}

Status OnnxModel::run_session(Call& call) {
  const std::size_t input_count = call.inputs.size();
  std::vector<const OrtValue*> inputs(input_count);
  std::ranges::transform(call.inputs, inputs.begin(), [](const OrtValuePtr& value) { return value.get(); });
  std::vector<OrtValue*> outputs(call.output_names.size(), nullptr);
  const OrtMemory::RunScope scope;
  OrtStatus* status = runtime().api().Run(session_->get(), nullptr, call.input_names.data(), inputs.data(), input_count,
                                          call.output_names.data(), outputs.size(), outputs.data());
  for (OrtValue* output : outputs) call.outputs.emplace_back(output, runtime().api().ReleaseValue);
  auto result = runtime().check(status, "model", Code::kInvalidArgument);
  if (!result && scope.refusal()) return fail(*scope.refusal());
  std::uint64_t peak = peak_run_bytes_.load(std::memory_order_relaxed);
  while (scope.peak_bytes() > peak &&
         !peak_run_bytes_.compare_exchange_weak(peak, scope.peak_bytes(), std::memory_order_relaxed)) {
  }
  return result;
}

Result<Tensor> OnnxModel::take_output(std::size_t port, OrtValuePtr value, const Batch& batch,
                                      const std::vector<Tensor>& inputs) const {
  const std::string& name = outputs_[port];
  auto tensor = take_ort_value(session_, runtime(), context_.arena, std::move(value));
  if (!tensor) return fail_at("output", name, tensor.error());
  if (batched_ && (tensor->shape.empty() || tensor->shape[0] != batch.rows)) {
    return fail(Code::kInternal,
                fmt::format("output '{}' has shape {} for a batch of {} rows; the first dimension must "
                            "be the rows (or set max_batch_size: 0)",
                            name, shape_to_string(tensor->shape), batch.rows));
  }
  // A graph may hand an input through: then the output lies in memory that only the input keeps alive.
  for (const Tensor& input : inputs) {
    const std::byte* begin = input.data.data();
    if (tensor->data.data() >= begin && tensor->data.data() < begin + input.data.size()) tensor->owner = input.owner;
  }
  return tensor;
}

}  // namespace

std::shared_ptr<BatchModel> make_onnx_model(const EngineContext& context, std::shared_ptr<Session> session,
                                            const ModelConfig& config, std::uint64_t weights_bytes) {
  return std::make_shared<OnnxModel>(context, std::move(session), config, weights_bytes);
}

}  // namespace sluice::engine
