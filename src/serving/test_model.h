// For tests: a model that is a function, tensors from values, and a sink that keeps what it was told.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/batch_model.h"
#include "engine/response_sink.h"
#include "io/compute.h"
#include "io/loop.h"
#include "serving/model_queue.h"

namespace sluice::serving {

inline Tensor tensor_of(DataType type, Shape shape, const std::string& data) {
  auto* copy = new std::string(data);
  auto* bytes = reinterpret_cast<std::byte*>(copy->data());
  BufferRef owner =
      wrap_foreign(bytes, copy->size(), [](void* text) { delete static_cast<std::string*>(text); }, copy);
  return Tensor{.datatype = type, .shape = std::move(shape), .data = owner.bytes(), .owner = owner};
}

inline Tensor int32_rows(const std::vector<std::int32_t>& rows) {
  std::string data(rows.size() * sizeof(std::int32_t), '\0');
  if (!rows.empty()) std::memcpy(data.data(), rows.data(), data.size());
  return tensor_of(DataType::kInt32, {static_cast<std::int64_t>(rows.size())}, data);
}

inline std::vector<std::int32_t> int32_values(const Tensor& tensor) {
  std::vector<std::int32_t> values(tensor.data.size() / sizeof(std::int32_t));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// Output i = input i of all requests, one after the other.
inline Result<engine::BatchOutput> identity_of(const engine::Batch& batch) {
  engine::BatchOutput out;
  if (batch.items.size() == 1) {
    out.outputs = batch.items[0].inputs;
    return out;
  }
  for (std::size_t i = 0; i < batch.items[0].inputs.size(); ++i) {
    Shape shape = batch.items[0].inputs[i].shape;
    shape[0] = batch.rows;
    std::string data;
    for (const auto& item : batch.items) data += as_text(item.inputs[i].data);
    out.outputs.push_back(tensor_of(batch.items[0].inputs[i].datatype, std::move(shape), data));
  }
  return out;
}

// Runs on `executor`, or on the caller's thread when there is none. It starts in one task and ends in the next, so
// that in simulated time a batch takes what a task costs.
class FunctionModel : public engine::BatchModel {
 public:
  using Body = Function<Result<engine::BatchOutput>(const engine::Batch&)>;
  FunctionModel(const io::Loop& clock, io::Executor* executor, Body body = identity_of)
      : clock_(clock), executor_(executor), body_(std::move(body)) {}

  const ModelSignature& signature() const override { return signature_; }
  engine::MemoryFigures memory() const override { return {}; }
  bool runs_inline() const override { return executor_ == nullptr; }
  void submit(engine::Batch batch, engine::BatchDone done) override {
    if (!executor_) return done(end(run(batch)));
    executor_->submit([this, batch = std::move(batch), done = std::move(done)]() mutable {
      executor_->submit([this, out = run(batch), done = std::move(done)]() mutable { done(end(std::move(out))); });
    });
  }

  ModelSignature signature_;

 private:
  Result<engine::BatchOutput> run(const engine::Batch& batch) {
    const Time start = clock_.now();
    Result<engine::BatchOutput> out = body_(batch);
    if (out) out->compute_start = start;
    return out;
  }
  Result<engine::BatchOutput> end(Result<engine::BatchOutput> out) const {
    if (out) out->compute_end = clock_.now();
    return out;
  }

  const io::Loop& clock_;
  io::Executor* executor_;
  Body body_;
};

// What became of one request.
struct Outcome {
  std::vector<InferResponse> responses;
  std::optional<Status> terminal;
  RequestTimes times;
  Time ended;

  bool ok() const { return terminal && terminal->has_value() && responses.size() == 1; }
  Code code() const { return !terminal ? Code::kUnknown : *terminal ? Code::kOk : terminal->error().code; }
  const Tensor& output(std::size_t i = 0) const { return responses.at(0).outputs.at(i).tensor; }
};

class OutcomeSink final : public engine::ResponseSink {
 public:
  OutcomeSink(std::shared_ptr<Outcome> outcome, const io::Loop& home, Function<void()> on_end = nullptr)
      : outcome_(std::move(outcome)), home_(home), on_end_(std::move(on_end)) {}

  void on_response(InferResponse response) override {
    EXPECT_TRUE(home_.on_loop_thread());
    EXPECT_FALSE(outcome_->terminal.has_value()) << "a response after the terminal";
    outcome_->responses.push_back(std::move(response));
  }
  void on_terminal(Status status, const RequestTimes& times) override {
    EXPECT_TRUE(home_.on_loop_thread());
    EXPECT_FALSE(outcome_->terminal.has_value()) << "a second terminal";
    outcome_->terminal = std::move(status);
    outcome_->times = times;
    outcome_->ended = home_.now();
    if (on_end_) on_end_();
  }

 private:
  std::shared_ptr<Outcome> outcome_;
  const io::Loop& home_;
  Function<void()> on_end_;
};

inline PreparedRequest prepared_of(std::vector<Tensor> inputs, Time received) {
  PreparedRequest request;
  request.item.rows = inputs.at(0).shape.empty() ? 1 : inputs[0].shape[0];
  request.item.inputs = std::move(inputs);
  request.times.received = received;
  return request;
}

}  // namespace sluice::serving
