// A tensor of a request or response in JSON: {name, shape, datatype, parameters?, data | binary_data_size}.
// Private to wire/oip.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "model/infer.h"
#include "wire/infer_rules.h"
#include "wire/oip/json_data.h"
#include "wire/oip/json_document.h"

namespace sluice::oip {

// The binary part of a body, taken piece by piece in the order of the tensors.
class BinaryPart {
 public:
  explicit BinaryPart(const Tensor& part) : part_(part) {}

  // The next bytes as the tensor's data: a view, or a copy where the view is not aligned for an element.
  Status take(std::size_t bytes, Arena& arena, Tensor& tensor);
  // Refuses left-over bytes.
  Status finish() const;

 private:
  const Tensor& part_;
  std::size_t taken_ = 0;
};

struct TensorContext {
  std::string_view kind;  // "input"
  const RequestLimits& limits;
  JsonDataRules data_rules;
  BinaryPart& binary;
  Arena& arena;
};

// Takes `binary_data_size` out of the parameters; nullopt when it is not there.
Result<std::optional<std::size_t>> take_binary_size(Parameters& parameters);

Status read_tensor_data(const std::optional<Element>& data, Parameters& parameters, const TensorContext& context,
                        Tensor& tensor);

// InputTensor or OutputTensor.
template <class T>
Status read_tensor(Element value, const TensorContext& context, T& out) {
  auto fields = pick(context.kind, value, {"name", "shape", "datatype", "parameters", "data"});
  if (!fields) return fail(std::move(fields.error()));
  const auto& [name, shape, datatype, parameters, data] = *fields;
  auto status = read_text("a tensor's name", name, context.limits, out.name);
  if (!status) return status;
  if (out.name.empty()) return fail(Code::kInvalidArgument, fmt::format("{} has no name", context.kind));
  status = read_datatype(datatype, out.tensor.datatype);
  if (status) status = read_shape(shape, out.tensor.shape);
  if (status) status = read_parameters(parameters, context.limits, out.parameters);
  if (status) status = read_tensor_data(data, out.parameters, context, out.tensor);
  return status ? Status{} : fail(infer_rules::in_tensor(context.kind, out.name, std::move(status.error())));
}

// A list of them; absent: none.
template <class T>
Status read_tensors(const std::optional<Element>& value, std::size_t limit, const TensorContext& context,
                    std::vector<T>& out) {
  if (!value) return {};
  simdjson::dom::array items;
  if (value->get(items) != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument,
                fmt::format("{}s must be an array, {} was given", context.kind, describe(*value)));
  }
  if (items.size() > limit) {
    return fail(Code::kInvalidArgument, fmt::format("{} {}s, the limit is {}", items.size(), context.kind, limit));
  }
  out.reserve(items.size());
  for (const Element item : items) {
    if (auto status = read_tensor(item, context, out.emplace_back()); !status) return status;
  }
  return {};
}

}  // namespace sluice::oip
