// Structs -> framed ModelInferRequest and ModelInferResponse:
//   [ prefix | metadata | tag, length ] [ tensor ] [ tag, length ] [ tensor ] ...
// Each bracket is a slice; tensors that are small join the text before them.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/check.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/infer_message.h"
#include "wire/grpc/infer_reader.h"
#include "wire/grpc/proto_wire.h"
#include "wire/infer_rules.h"

namespace sluice::grpc_wire {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};

// A member of a oneof is written even when it is zero or empty.
std::size_t size_of(const ParameterValue& value) {
  return std::visit(Overload{[](bool) { return std::size_t{2}; },
                             [](std::int64_t v) { return 1 + varint_size(static_cast<std::uint64_t>(v)); },
                             [](std::uint64_t v) { return 1 + varint_size(v); },
                             [](double) { return std::size_t{9}; },
                             [](const std::string& v) { return size_of_bytes(v.size()); }},
                    value);
}

void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_tag(out, field, WireType::kVarint);
  put_varint(out, value);
}

void put(std::string& out, const ParameterValue& value) {
  std::visit(Overload{[&](bool v) { put_number(out, 1, v ? 1 : 0); },
                      [&](std::int64_t v) { put_number(out, 2, static_cast<std::uint64_t>(v)); },
                      [&](std::uint64_t v) { put_number(out, 5, v); },
                      [&](double v) {
                        put_tag(out, 4, WireType::kFixed64);
                        char bytes[sizeof v];
                        std::memcpy(bytes, &v, sizeof v);
                        out.append(bytes, sizeof v);
                      },
                      [&](const std::string& v) {
                        put_bytes_head(out, 3, v.size());
                        out.append(v);
                      }},
             value);
}

std::size_t size_of_entry(const Parameter& parameter) {
  return size_of_text(parameter.name) + size_of_bytes(size_of(parameter.value));
}

std::size_t size_of(const Parameters& parameters) {
  std::size_t size = 0;
  for (const Parameter& parameter : parameters) size += size_of_bytes(size_of_entry(parameter));
  return size;
}

void put(std::string& out, std::uint32_t field, const Parameters& parameters) {
  for (const Parameter& parameter : parameters) {
    put_bytes_head(out, field, size_of_entry(parameter));
    put_text(out, 1, parameter.name);
    put_bytes_head(out, 2, size_of(parameter.value));
    put(out, parameter.value);
  }
}

std::size_t size_of_dimensions(const Shape& shape) {
  std::size_t size = 0;
  for (const std::int64_t dimension : shape) size += varint_size(static_cast<std::uint64_t>(dimension));
  return size;
}

// InputTensor or OutputTensor, without its data.
template <class T>
std::size_t size_of_tensor(const T& item) {
  const std::size_t dimensions = item.tensor.shape.empty() ? 0 : size_of_bytes(size_of_dimensions(item.tensor.shape));
  return size_of_text(item.name) + size_of_text(datatype_name(item.tensor.datatype)) + dimensions +
         size_of(item.parameters);
}

template <class T>
void put_tensor(std::string& out, const T& item) {
  put_bytes_head(out, 5, size_of_tensor(item));
  put_text(out, 1, item.name);
  put_text(out, 2, datatype_name(item.tensor.datatype));
  if (!item.tensor.shape.empty()) {
    put_bytes_head(out, 3, size_of_dimensions(item.tensor.shape));
    for (const std::int64_t dimension : item.tensor.shape) put_varint(out, static_cast<std::uint64_t>(dimension));
  }
  put(out, 4, item.parameters);
}

void put_requested_output(std::string& out, const RequestedOutput& output) {
  const Parameters parameters = infer_rules::wire_parameters(output, false);
  put_bytes_head(out, 6, size_of_text(output.name) + size_of(parameters));
  put_text(out, 1, output.name);
  put(out, 2, parameters);
}

// Room for the prefix, which is filled in when the length is known.
std::string begin_message(std::size_t reserve) {
  std::string text;
  text.reserve(kPrefixBytes + reserve);
  text.append(kPrefixBytes, '\0');
  return text;
}

// A rough size of the metadata and the small tensors, so that most messages take one allocation.
template <class Tensors>
std::size_t rough_size(const Tensors& tensors) {
  constexpr std::size_t kHeadBytes = 128;
  std::size_t size = kHeadBytes;
  for (const auto& item : tensors) {
    size += kHeadBytes + (item.tensor.data.size() <= kInlineTensorBytes ? item.tensor.data.size() : 0);
  }
  return size;
}

// Adds the tensors behind the metadata and completes the prefix.
template <class Tensors>
Payload finish_message(std::string text, std::uint32_t raw_field, const Tensors& tensors) {
  Payload payload;
  for (const auto& item : tensors) {
    const Tensor& tensor = item.tensor;
    put_bytes_head(text, raw_field, tensor.data.size());
    if (tensor.data.size() <= kInlineTensorBytes) {
      text.append(as_text(tensor.data));
      continue;
    }
    payload.emplace_back(std::exchange(text, {}));
    payload.emplace_back(tensor.data, tensor.owner);
  }
  if (!text.empty()) payload.emplace_back(std::move(text));
  const std::size_t length = payload_size(payload) - kPrefixBytes;
  SLUICE_CHECK(length <= std::numeric_limits<std::uint32_t>::max(), "a gRPC message is below 4 GiB");
  const auto prefix = message_prefix(static_cast<std::uint32_t>(length));
  std::memcpy(payload.front().text.data(), prefix.data(), prefix.size());
  return payload;
}

}  // namespace

Payload encode_infer_request(const InferRequest& request) {
  std::string text = begin_message(rough_size(request.inputs));
  put_text(text, 1, request.model_name);
  put_text(text, 2, request.model_version);
  put_text(text, 3, request.id);
  put(text, 4, infer_rules::wire_parameters(request, false));
  for (const InputTensor& input : request.inputs) put_tensor(text, input);
  for (const RequestedOutput& output : request.outputs) put_requested_output(text, output);
  return finish_message(std::move(text), kRawInputField, request.inputs);
}

Payload encode_infer_response(const InferResponse& response) {
  std::string text = begin_message(rough_size(response.outputs));
  put_text(text, 1, response.model_name);
  put_text(text, 2, response.model_version);
  put_text(text, 3, response.id);
  put(text, 4, response.parameters);
  for (const OutputTensor& output : response.outputs) put_tensor(text, output);
  return finish_message(std::move(text), kRawOutputField, response.outputs);
}

}  // namespace sluice::grpc_wire
