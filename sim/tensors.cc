#include "tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace sluice::sim {
namespace {

constexpr int kRowBits = 20;

std::int64_t a_value(std::uint64_t id, std::int64_t row, std::int64_t column) {
  std::uint64_t x = id * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(row) * 0xbf58476d1ce4e5b9ULL +
                    static_cast<std::uint64_t>(column) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<std::int64_t>(x * 0xd6e8feb86659fd93ULL);
}

std::int64_t b_value(std::uint64_t id, std::int64_t row) {
  return static_cast<std::int64_t>(id << kRowBits | static_cast<std::uint64_t>(row));
}

std::int64_t value_at(const Tensor& tensor, std::int64_t index) {
  std::int64_t value = 0;
  std::memcpy(&value, tensor.data.data() + index * sizeof value, sizeof value);
  return value;
}

Shape shape_of(const ModelPlan& model, std::int64_t rows, std::int64_t width) {
  return model.max_batch_size > 0 ? Shape{rows, width} : Shape{width};
}

template <class ValueAt>
InputTensor make_input(std::string name, Shape shape, Arena& arena, ValueAt value_at) {
  const std::int64_t count = element_count(shape).value();
  auto buffer = arena.allocate(static_cast<std::size_t>(count) * sizeof(std::int64_t));
  SLUICE_CHECK(buffer.has_value(), "the clients' arena is large enough");
  auto* values = reinterpret_cast<std::int64_t*>(buffer->data());
  for (std::int64_t i = 0; i < count; ++i) values[i] = value_at(i);
  InputTensor input;
  input.name = std::move(name);
  input.tensor = Tensor{DataType::kInt64, std::move(shape), buffer->bytes(), *buffer};
  return input;
}

std::optional<std::string> wrong_output(const ModelPlan& model, const RequestPlan& plan, const OutputTensor& output) {
  const bool is_y = output.name == "Y";
  const std::int64_t width = is_y ? plan.width : 1;
  const Shape expected = shape_of(model, plan.rows, width);
  const Tensor& tensor = output.tensor;
  if (tensor.datatype != DataType::kInt64 || tensor.shape != expected) {
    return fmt::format("output {} is {} {}, expected INT64 {}", output.name, datatype_name(tensor.datatype),
                       shape_to_string(tensor.shape), shape_to_string(expected));
  }
  if (tensor.data.size() != static_cast<std::size_t>(plan.rows * width) * sizeof(std::int64_t)) {
    return fmt::format("output {} has {} bytes for {}", output.name, tensor.data.size(), shape_to_string(expected));
  }
  std::vector<std::int64_t> a(static_cast<std::size_t>(plan.width)), y(a.size());
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    for (std::int64_t column = 0; column < plan.width; ++column) a[column] = a_value(plan.id, row, column);
    std::int64_t s = 0;
    compute_row(a.data(), plan.width, b_value(plan.id, row), y.data(), &s);
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t got = value_at(tensor, row * width + column);
      if (got == (is_y ? y[column] : s)) continue;
      return fmt::format("output {} at [{}, {}] is {}, which is not this request's", output.name, row, column, got);
    }
  }
  return std::nullopt;
}

}  // namespace

InferRequest make_request(const ModelPlan& model, const RequestPlan& plan, Arena& arena) {
  InferRequest request;
  request.model_name = plan.unknown_model ? kUnknownModelName : kModelName;
  request.id = std::to_string(plan.id);
  request.priority = plan.priority;
  if (plan.queue_timeout) {
    request.timeout_us = std::chrono::duration_cast<std::chrono::microseconds>(*plan.queue_timeout).count();
  }
  const std::int64_t width = std::max<std::int64_t>(plan.width, 1);
  request.inputs.push_back(make_input("A", shape_of(model, plan.rows, plan.width), arena, [&](std::int64_t i) {
    return a_value(plan.id, i / width, i % width);
  }));
  request.inputs.push_back(make_input("B", shape_of(model, plan.rows, 1), arena,
                                      [&](std::int64_t i) { return b_value(plan.id, i); }));
  if (plan.inputs_reversed) std::ranges::reverse(request.inputs);
  for (const std::string& name : plan.outputs) request.outputs.push_back({.name = name});
  return request;
}

std::uint64_t request_of(std::int64_t b) { return static_cast<std::uint64_t>(b) >> kRowBits; }

std::optional<std::string> wrong_input(const RequestPlan& plan, const Tensor& a, const Tensor& b) {
  const auto size = [&](std::int64_t width) {
    return static_cast<std::size_t>(plan.rows * width) * sizeof(std::int64_t);
  };
  if (a.data.size() != size(plan.width) || b.data.size() != size(1)) {
    return fmt::format("A has {} and B {} bytes, the request sent {} and {}", a.data.size(), b.data.size(),
                       size(plan.width), size(1));
  }
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    if (value_at(b, row) != b_value(plan.id, row)) return fmt::format("B at row {} is not what was sent", row);
    for (std::int64_t column = 0; column < plan.width; ++column) {
      if (value_at(a, row * plan.width + column) == a_value(plan.id, row, column)) continue;
      return fmt::format("A at [{}, {}] is not what was sent", row, column);
    }
  }
  return std::nullopt;
}

std::optional<std::string> wrong_answer(const ModelPlan& model, const RequestPlan& plan,
                                        const InferResponse& response) {
  if (response.id != std::to_string(plan.id)) return fmt::format("the answer's id is '{}'", response.id);
  if (response.model_name != kModelName) return fmt::format("the answer's model is '{}'", response.model_name);
  const std::vector<std::string> names = plan.outputs.empty() ? std::vector<std::string>{"Y", "S"} : plan.outputs;
  if (response.outputs.size() != names.size()) {
    return fmt::format("{} outputs, {} were asked for", response.outputs.size(), names.size());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (response.outputs[i].name != names[i]) {
      return fmt::format("output {} is '{}', expected '{}'", i, response.outputs[i].name, names[i]);
    }
    if (auto wrong = wrong_output(model, plan, response.outputs[i])) return wrong;
  }
  return std::nullopt;
}

void compute_row(const std::int64_t* a, std::int64_t width, std::int64_t b, std::int64_t* y, std::int64_t* s) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    const auto value = static_cast<std::uint64_t>(a[i]);
    y[i] = static_cast<std::int64_t>(value * 3 + static_cast<std::uint64_t>(b));
    sum += value;
  }
  *s = static_cast<std::int64_t>(static_cast<std::uint64_t>(b) ^ sum);
}

}  // namespace sluice::sim
