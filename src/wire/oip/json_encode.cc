// Structs -> bodies. Rules: json.h.
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>

#include "base/json_writer.h"
#include "wire/infer_rules.h"
#include "wire/oip/json.h"

namespace sluice::oip {
namespace {

// Binary tensors up to this size are copied behind the JSON, which is cheaper than a part of their own to send.
constexpr std::size_t kInlineTensorBytes = 2048;

constexpr std::size_t kMaxNumberChars = 32;

template <std::integral T>
char* print(char* at, T value) {
  return std::to_chars(at, at + kMaxNumberChars, value).ptr;
}

// The shortest form that reads back to the same value, also where integers and floats are told apart: a float of
// integral value that 64 bits cannot hold is written with an exponent, and minus zero with a point.
template <std::floating_point T>
char* print(char* at, T value) {
  constexpr T kBeyondInt64 = static_cast<T>(9.2e18);
  if (!std::isfinite(value)) return std::copy_n("null", 4, at);
  if (value == 0 && std::signbit(value)) return std::copy_n("-0.0", 4, at);
  if (std::fabs(value) < kBeyondInt64) return std::to_chars(at, at + kMaxNumberChars, value).ptr;
  return std::to_chars(at, at + kMaxNumberChars, value, std::chars_format::scientific).ptr;
}

enum class Flag : std::uint8_t {};  // a BOOL element: any byte but 0 is true

char* print(char* at, Flag value) {
  const std::string_view text = value != Flag{} ? "true" : "false";
  return std::copy_n(text.data(), text.size(), at);
}

template <class T>
void append_numbers(std::string& out, Bytes data) {
  constexpr std::size_t kAtOnce = 64;
  std::array<char, kAtOnce * (kMaxNumberChars + 1)> block;
  const std::size_t count = data.size() / sizeof(T);
  for (std::size_t i = 0; i < count;) {
    char* at = block.data();
    for (const std::size_t end = std::min(count, i + kAtOnce); i < end; ++i) {
      T value;
      std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
      at = print(at, value);
      *at++ = ',';
    }
    if (i == count) --at;
    out.append(block.data(), static_cast<std::size_t>(at - block.data()));
  }
}

void append_texts(std::string& out, std::string_view data) {
  std::uint32_t length = 0;
  for (bool first = true; data.size() >= sizeof length; first = false) {
    std::memcpy(&length, data.data(), sizeof length);
    data.remove_prefix(sizeof length);
    if (!first) out += ',';
    append_json_string(out, data.substr(0, length));
    data.remove_prefix(std::min<std::size_t>(length, data.size()));
  }
}

// The elements between brackets, flat.
void append_elements(std::string& out, const Tensor& tensor) {
  switch (tensor.datatype) {
    case DataType::kBool: return append_numbers<Flag>(out, tensor.data);
    case DataType::kUint8: return append_numbers<std::uint8_t>(out, tensor.data);
    case DataType::kUint16: return append_numbers<std::uint16_t>(out, tensor.data);
    case DataType::kUint32: return append_numbers<std::uint32_t>(out, tensor.data);
    case DataType::kUint64: return append_numbers<std::uint64_t>(out, tensor.data);
    case DataType::kInt8: return append_numbers<std::int8_t>(out, tensor.data);
    case DataType::kInt16: return append_numbers<std::int16_t>(out, tensor.data);
    case DataType::kInt32: return append_numbers<std::int32_t>(out, tensor.data);
    case DataType::kInt64: return append_numbers<std::int64_t>(out, tensor.data);
    case DataType::kFp32: return append_numbers<float>(out, tensor.data);
    case DataType::kFp64: return append_numbers<double>(out, tensor.data);
    case DataType::kBytes: return append_texts(out, as_text(tensor.data));
    default: return;  // binary only
  }
}

bool only_binary(DataType type) { return type == DataType::kFp16 || type == DataType::kBf16; }

// A double that is integral keeps a point, so that it stays a double.
void put_double(JsonWriter& json, double value) {
  std::array<char, kMaxNumberChars + 2> digits;
  char* end = print(digits.data(), value);
  std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (text.find_first_not_of("-0123456789") == std::string_view::npos) {
    end = std::copy_n(".0", 2, end);
    text = {digits.data(), static_cast<std::size_t>(end - digits.data())};
  }
  json.raw(text);
}

struct PutValue {
  JsonWriter& json;
  void operator()(bool value) const { json.boolean(value); }
  void operator()(std::int64_t value) const { json.integer(value); }
  void operator()(std::uint64_t value) const { json.unsigned_integer(value); }
  void operator()(double value) const { put_double(json, value); }
  void operator()(const std::string& value) const { json.string(value); }
};

void put_parameters(JsonWriter& json, const Parameters& parameters, std::optional<std::size_t> binary_size) {
  if (parameters.empty() && !binary_size) return;
  json.key("parameters").begin_object();
  for (const Parameter& parameter : parameters) {
    json.key(parameter.name);
    std::visit(PutValue{json}, parameter.value);
  }
  if (binary_size) json.key("binary_data_size").unsigned_integer(*binary_size);
  json.end_object();
}

void put_shape(JsonWriter& json, const Shape& shape) {
  json.key("shape").begin_array();
  for (const std::int64_t dimension : shape) json.integer(dimension);
  json.end_array();
}

// A body that is being written: its JSON, and the tensors that go behind it.
class Body {
 public:
  JsonWriter& json() { return json_; }

  // InputTensor or OutputTensor.
  template <class T>
  void put_tensor(const T& item, bool binary) {
    const Tensor& tensor = item.tensor;
    binary = binary || only_binary(tensor.datatype);
    json_.begin_object().key("name").string(item.name);
    json_.key("datatype").string(datatype_name(tensor.datatype));
    put_shape(json_, tensor.shape);
    put_parameters(json_, item.parameters, binary ? std::optional(tensor.data.size()) : std::nullopt);
    if (binary) {
      binary_.push_back(&tensor);
    } else {
      json_.key("data").begin_array();
      append_elements(text_, tensor);
      json_.end_array();
    }
    json_.end_object();
  }

  EncodedJson finish() {
    EncodedJson out;
    if (!binary_.empty()) out.json_length = text_.size();
    for (const Tensor* tensor : binary_) {
      if (tensor->data.size() <= kInlineTensorBytes) {
        text_.append(as_text(tensor->data));
        continue;
      }
      if (!text_.empty()) out.payload.emplace_back(std::exchange(text_, {}));
      out.payload.emplace_back(tensor->data, tensor->owner);
    }
    if (!text_.empty()) out.payload.emplace_back(std::move(text_));
    return out;
  }

 private:
  std::string text_;
  JsonWriter json_{text_};
  std::vector<const Tensor*> binary_;
};

bool goes_binary(const InferRequest& request, std::string_view name) {
  for (const RequestedOutput& output : request.outputs) {
    if (output.name == name) return output.binary.value_or(request.binary_output_default);
  }
  return request.binary_output_default;
}

void put_requested_output(JsonWriter& json, const RequestedOutput& output) {
  json.begin_object().key("name").string(output.name);
  put_parameters(json, infer_rules::wire_parameters(output, true), std::nullopt);
  json.end_object();
}

void put_metadata(JsonWriter& json, std::string_view key, const std::vector<TensorMetadata>& tensors) {
  json.key(key).begin_array();
  for (const TensorMetadata& tensor : tensors) {
    json.begin_object().key("name").string(tensor.name).key("datatype").string(datatype_name(tensor.datatype));
    put_shape(json, tensor.shape);
    json.end_object();
  }
  json.end_array();
}

void put_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key).begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

}  // namespace

EncodedJson encode_infer_response(const InferResponse& response, const InferRequest& request) {
  Body body;
  JsonWriter& json = body.json();
  json.begin_object().key("model_name").string(response.model_name);
  if (!response.model_version.empty()) json.key("model_version").string(response.model_version);
  if (!response.id.empty()) json.key("id").string(response.id);
  put_parameters(json, response.parameters, std::nullopt);
  json.key("outputs").begin_array();
  for (const OutputTensor& output : response.outputs) body.put_tensor(output, goes_binary(request, output.name));
  json.end_array().end_object();
  return body.finish();
}

EncodedJson encode_infer_request(const InferRequest& request, bool binary) {
  Body body;
  JsonWriter& json = body.json();
  json.begin_object();
  if (!request.id.empty()) json.key("id").string(request.id);
  put_parameters(json, infer_rules::wire_parameters(request, true), std::nullopt);
  json.key("inputs").begin_array();
  for (const InputTensor& input : request.inputs) body.put_tensor(input, binary);
  json.end_array();
  if (!request.outputs.empty()) {
    json.key("outputs").begin_array();
    for (const RequestedOutput& output : request.outputs) put_requested_output(json, output);
    json.end_array();
  }
  json.end_object();
  return body.finish();
}

std::string encode_error(std::string_view message) {
  std::string out;
  JsonWriter(out).begin_object().key("error").string(message).end_object();
  return out;
}

std::string encode_server_metadata(const ServerMetadata& metadata) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("name").string(metadata.name).key("version").string(metadata.version);
  put_strings(json, "extensions", metadata.extensions);
  json.end_object();
  return out;
}

std::string encode_model_metadata(const ModelMetadata& metadata) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("name").string(metadata.name);
  put_strings(json, "versions", metadata.versions);
  json.key("platform").string(metadata.platform);
  put_metadata(json, "inputs", metadata.inputs);
  put_metadata(json, "outputs", metadata.outputs);
  json.end_object();
  return out;
}

}  // namespace sluice::oip
