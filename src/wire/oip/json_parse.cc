// Bodies -> structs. Rules: json.h.
#include <fmt/format.h>

#include "base/checked.h"
#include "wire/infer_rules.h"
#include "wire/oip/json.h"
#include "wire/oip/json_document.h"
#include "wire/oip/json_tensor.h"

namespace sluice::oip {
namespace {

TensorContext context_for(std::string_view kind, const JsonBody& body, const RequestLimits& limits, BinaryPart& binary,
                          Arena& arena) {
  return {.kind = kind,
          .limits = limits,
          .data_rules = {.max_bytes = limits.max_tensor_bytes, .json_bytes = body.json.size()},
          .binary = binary,
          .arena = arena};
}

Status read_requested_outputs(const std::optional<Element>& value, const RequestLimits& limits,
                              std::vector<RequestedOutput>& out) {
  if (!value) return {};
  simdjson::dom::array items;
  if (value->get(items) != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument, fmt::format("outputs must be an array, {} was given", describe(*value)));
  }
  if (items.size() > limits.max_outputs) {
    return fail(Code::kInvalidArgument, fmt::format("{} outputs, the limit is {}", items.size(), limits.max_outputs));
  }
  out.reserve(items.size());
  for (const Element item : items) {
    auto fields = pick("a requested output", item, {"name", "parameters"});
    if (!fields) return fail(std::move(fields.error()));
    RequestedOutput& output = out.emplace_back();
    auto status = read_text("an output's name", (*fields)[0], limits, output.name);
    if (!status) return status;
    if (output.name.empty()) return fail(Code::kInvalidArgument, "a requested output has no name");
    status = read_parameters((*fields)[1], limits, output.parameters);
    if (!status) return fail(infer_rules::in_tensor("output", output.name, std::move(status.error())));
  }
  return {};
}

Result<TensorMetadata> read_tensor_metadata(Element value) {
  auto fields = pick("a tensor's metadata", value, {"name", "datatype", "shape"});
  if (!fields) return fail(std::move(fields.error()));
  TensorMetadata tensor;
  auto status = read_text("a tensor's name", (*fields)[0], RequestLimits{}, tensor.name);
  if (status) status = read_datatype((*fields)[1], tensor.datatype);
  if (status) status = read_shape((*fields)[2], tensor.shape);
  if (!status) return fail(std::move(status.error()));
  return tensor;
}

Status read_all_metadata(const std::optional<Element>& value, std::vector<TensorMetadata>& out) {
  if (!value) return {};
  simdjson::dom::array items;
  if (value->get(items) != simdjson::SUCCESS) return fail(Code::kInvalidArgument, "a list of tensors is no array");
  for (const Element item : items) {
    auto tensor = read_tensor_metadata(item);
    if (!tensor) return fail(std::move(tensor.error()));
    out.push_back(std::move(*tensor));
  }
  return {};
}

// The shape of a raw body of that many bytes; the one dimension that is variable follows from them.
Result<Shape> raw_shape(const TensorMetadata& input, std::size_t bytes) {
  Shape shape = input.shape;
  std::int64_t* variable = nullptr;
  for (std::int64_t& dimension : shape) {
    if (dimension >= 0) continue;
    if (variable != nullptr) {
      return fail(Code::kInvalidArgument, fmt::format("shape {} has more than one variable dimension; a raw body takes "
                                                      "at most one", shape_to_string(input.shape)));
    }
    variable = &dimension;
  }
  if (variable == nullptr) return shape;
  *variable = 1;
  if (input.datatype == DataType::kBytes) return shape;  // the body is one element
  const auto unit = tensor_byte_size(input.datatype, shape);
  if (!unit) return fail(unit.error());
  if (*unit == 0 || bytes % *unit != 0) {
    return fail(Code::kInvalidArgument,
                fmt::format("shape {} of datatype {} takes a multiple of {} bytes, the body has {}",
                            shape_to_string(input.shape), datatype_name(input.datatype), *unit, bytes));
  }
  *variable = static_cast<std::int64_t>(bytes / *unit);
  return shape;
}

// A raw BYTES body is the one element without its length: that is put before it.
Status frame_raw_bytes(const Tensor& body, Arena& arena, Tensor& tensor) {
  constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
  const auto count = element_count(tensor.shape);
  if (!count) return fail(count.error());
  if (*count != 1 || body.data.size() > UINT32_MAX) {
    return fail(Code::kInvalidArgument,
                fmt::format("a raw body of {} bytes is one BYTES element, shape {} has {}", body.data.size(),
                            shape_to_string(tensor.shape), *count));
  }
  auto buffer = arena.allocate(kLengthBytes + body.data.size());
  if (!buffer) return fail(std::move(buffer.error()));
  const auto length = static_cast<std::uint32_t>(body.data.size());
  std::memcpy(buffer->data(), &length, kLengthBytes);
  if (length > 0) std::memcpy(buffer->data() + kLengthBytes, body.data.data(), length);
  tensor.owner = std::move(*buffer);
  tensor.data = std::as_const(tensor.owner).bytes();
  return {};
}

Status read_raw_input(const Tensor& body, const TensorMetadata& input, Arena& arena, Tensor& tensor) {
  auto shape = raw_shape(input, body.data.size());
  if (!shape) return fail(std::move(shape.error()));
  tensor.datatype = input.datatype;
  tensor.shape = std::move(*shape);
  if (input.datatype == DataType::kBytes) return frame_raw_bytes(body, arena, tensor);
  return BinaryPart(body).take(body.data.size(), arena, tensor);
}

}  // namespace

Result<InferRequest> parse_infer_request(const JsonBody& body, Arena& arena, const RequestLimits& limits) {
  JsonDocument document;
  auto status = document.parse(body.json, body.readable_past_json, limits.max_json_depth);
  if (!status) return fail(std::move(status.error()));
  auto fields = pick("the request", document.root(), {"id", "parameters", "inputs", "outputs"});
  if (!fields) return fail(std::move(fields.error()));
  const auto& [id, parameters, inputs, outputs] = *fields;
  InferRequest request;
  BinaryPart binary(body.binary);
  if (!inputs) return fail(Code::kInvalidArgument, "the request has no inputs");
  status = read_text("id", id, limits, request.id);
  if (status) status = read_parameters(parameters, limits, request.parameters);
  if (status) status = read_requested_outputs(outputs, limits, request.outputs);
  if (status) {
    status = read_tensors(inputs, limits.max_inputs, context_for("input", body, limits, binary, arena), request.inputs);
  }
  if (status) status = infer_rules::finish(request);
  if (status) status = binary.finish();
  if (!status) return fail(std::move(status.error()));
  return request;
}

Result<InferRequest> parse_raw_request(const Tensor& body, const ModelMetadata& model, Arena& arena) {
  if (model.inputs.size() != 1) {
    return fail(Code::kInvalidArgument, fmt::format("a raw body is for a model with one input, '{}' has {}", model.name,
                                                    model.inputs.size()));
  }
  InferRequest request{.model_name = model.name, .binary_output_default = true};
  InputTensor& input = request.inputs.emplace_back();
  input.name = model.inputs[0].name;
  if (auto status = read_raw_input(body, model.inputs[0], arena, input.tensor); !status) {
    return fail(infer_rules::in_tensor("input", input.name, std::move(status.error())));
  }
  return request;
}

Result<InferResponse> parse_infer_response(const JsonBody& body, Arena& arena, const RequestLimits& limits) {
  JsonDocument document;
  auto status = document.parse(body.json, body.readable_past_json, limits.max_json_depth);
  if (!status) return fail(std::move(status.error()));
  auto fields = pick("the response", document.root(), {"model_name", "model_version", "id", "parameters", "outputs"});
  if (!fields) return fail(std::move(fields.error()));
  const auto& [model_name, model_version, id, parameters, outputs] = *fields;
  InferResponse response;
  BinaryPart binary(body.binary);
  TensorContext context = context_for("output", body, limits, binary, arena);
  context.data_rules.null_is_nan = true;
  status = read_text("model_name", model_name, limits, response.model_name);
  if (status) status = read_text("model_version", model_version, limits, response.model_version);
  if (status) status = read_text("id", id, limits, response.id);
  if (status) status = read_parameters(parameters, limits, response.parameters);
  if (status) status = read_tensors(outputs, limits.max_outputs, context, response.outputs);
  if (status) status = infer_rules::finish(response);
  if (status) status = binary.finish();
  if (!status) return fail(std::move(status.error()));
  return response;
}

Result<ModelMetadata> parse_model_metadata(std::string_view json) {
  const RequestLimits limits;
  JsonDocument document;
  auto status = document.parse(json, 0, limits.max_json_depth);
  if (!status) return fail(std::move(status.error()));
  auto fields = pick("a model's metadata", document.root(), {"name", "versions", "platform", "inputs", "outputs"});
  if (!fields) return fail(std::move(fields.error()));
  const auto& [name, versions, platform, inputs, outputs] = *fields;
  ModelMetadata model;
  status = read_text("name", name, limits, model.name);
  if (status) status = read_text("platform", platform, limits, model.platform);
  if (status) status = read_all_metadata(inputs, model.inputs);
  if (status) status = read_all_metadata(outputs, model.outputs);
  simdjson::dom::array items;
  if (status && versions && versions->get(items) == simdjson::SUCCESS) {
    for (const Element item : items) {
      if (status) status = read_text("a version", item, limits, model.versions.emplace_back());
    }
  }
  if (!status) return fail(std::move(status.error()));
  return model;
}

std::string parse_error(std::string_view body) {
  JsonDocument document;
  std::string_view message;
  if (document.parse(body, 0, RequestLimits{}.max_json_depth) &&
      document.root().at_key("error").get(message) == simdjson::SUCCESS) {
    return std::string(message);
  }
  return std::string(body);
}

}  // namespace sluice::oip
