#include "cli/request_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/json_writer.h"
#include "base/random.h"
#include "io/files.h"
#include "wire/oip/json.h"

namespace sluice::cli {
namespace {

constexpr std::uint64_t kMaxInputFileBytes = std::uint64_t{1} << 30;

using Assignments = std::map<std::string, std::string, std::less<>>;

Result<Assignments> parse_assignments(const std::vector<std::string>& flags, std::string_view flag,
                                      const ModelMetadata& model) {
  Assignments assignments;
  for (const std::string& text : flags) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) {
      return fail(Code::kInvalidArgument, fmt::format("{} '{}': expected NAME=VALUE", flag, text));
    }
    const std::string name = text.substr(0, equals);
    if (std::ranges::find(model.inputs, name, &TensorMetadata::name) == model.inputs.end()) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{} '{}': model '{}' has no input '{}'", flag, text, model.name, name));
    }
    assignments[name] = text.substr(equals + 1);
  }
  return assignments;
}

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto word = text.substr(0, comma);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value < 0) {
      return fail(Code::kInvalidArgument, fmt::format("dimension '{}' is not a number of at least 0", word));
    }
    shape.push_back(value);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return shape;
}

Shape with_free_dimensions_one(Shape shape) {
  std::ranges::replace_if(shape, [](std::int64_t d) { return d < 0; }, 1);
  return shape;
}

// Values in [0, 1) for floating-point types, small integers for the others, "text" for BYTES.
std::string random_json(DataType type, std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (std::int64_t i = 0; i < count; ++i) {
    switch (type) {
      case DataType::kFp32: json.number(static_cast<float>(random.unit())); break;
      case DataType::kFp64: json.number(random.unit()); break;
      case DataType::kBool: json.boolean(random.chance(0.5)); break;
      case DataType::kBytes: json.string("text"); break;
      default: json.integer(random.between(0, 9));
    }
  }
  json.end_array();
  return out;
}

// JSON -> tensor, by the protocol's own parser.
Result<Tensor> tensor_of_json(const TensorMetadata& input, const Shape& shape, std::string_view data, Arena& arena) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("inputs").begin_array().begin_object();
  json.key("name").string(input.name).key("datatype").string(datatype_name(input.datatype));
  json.key("shape").begin_array();
  for (const auto dimension : shape) json.integer(dimension);
  json.end_array().key("data").raw(data).end_object().end_array().end_object();
  const std::size_t length = body.size();
  body.append(64, '\0');  // the parser reads past the end
  auto request = oip::parse_infer_request({.json = std::string_view(body).substr(0, length)}, arena, {});
  if (!request) return std::unexpected(std::move(request.error()));
  return std::move(request->inputs.front().tensor);
}

Result<Tensor> filled_tensor(DataType type, Shape shape, const std::string* bytes, Arena& arena) {
  Tensor tensor;
  tensor.datatype = type;
  std::size_t size = 0;
  if (bytes) {
    size = bytes->size();
  } else {
    auto expected = tensor_byte_size(type, shape);
    if (!expected) return std::unexpected(std::move(expected.error()));
    size = *expected;
  }
  auto buffer = arena.allocate(size);
  if (!buffer) return std::unexpected(std::move(buffer.error()));
  if (bytes) {
    std::memcpy(buffer->data(), bytes->data(), size);
  } else {
    std::memset(buffer->data(), 0, size);
  }
  tensor.shape = std::move(shape);
  tensor.data = buffer->bytes();
  tensor.owner = std::move(*buffer);
  return tensor;
}

Result<Tensor> tensor_of_file(const TensorMetadata& input, const Shape& shape, const std::string& path, Arena& arena) {
  auto content = io::read_file(path, kMaxInputFileBytes);
  if (!content) return std::unexpected(std::move(content.error()));
  if (content->starts_with("\x93NUMPY")) return parse_npy(*content, arena);
  return filled_tensor(input.datatype, shape, &*content, arena);
}

Result<Tensor> random_tensor(const TensorMetadata& input, const Shape& shape, std::uint64_t seed, Arena& arena) {
  const auto count = element_count(shape);
  if (!count) return std::unexpected(count.error());
  const bool raw_only = input.datatype == DataType::kFp16 || input.datatype == DataType::kBf16;
  if (!raw_only) return tensor_of_json(input, shape, random_json(input.datatype, *count, seed), arena);
  // Bit patterns below 0x3c00 are values in [0, 1) for FP16 and small ones for BF16.
  Random random(seed);
  std::string bytes;
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto bits = static_cast<std::uint16_t>(random.below(0x3c00));
    bytes.push_back(static_cast<char>(bits & 255));
    bytes.push_back(static_cast<char>(bits >> 8));
  }
  return filled_tensor(input.datatype, shape, &bytes, arena);
}

Result<Tensor> build_input(const TensorMetadata& input, const std::string& value, const std::optional<Shape>& given,
                           std::uint64_t seed, Arena& arena) {
  const Shape shape = given ? *given : with_free_dimensions_one(input.shape);
  if (value == "random") return random_tensor(input, shape, seed, arena);
  if (value == "zeros" && input.datatype != DataType::kBytes)
    return filled_tensor(input.datatype, shape, nullptr, arena);
  if (value.starts_with('@')) return tensor_of_file(input, shape, value.substr(1), arena);
  return tensor_of_json(input, given ? *given : shape_of_json(value), value, arena);
}

}  // namespace

Shape shape_of_json(std::string_view json) {
  // At each depth the length is that of the first array there; ragged data is refused by the parser later.
  Shape shape;
  std::size_t depth = 0;
  std::vector<bool> counted;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[') {
      if (++depth > shape.size()) {
        const auto next = json.find_first_not_of(" \t\n", i + 1);
        shape.push_back(next != std::string_view::npos && json[next] == ']' ? 0 : 1);
        counted.push_back(false);
      }
    } else if (c == ']' && depth > 0) {
      counted[--depth] = true;
    } else if (c == ',' && depth > 0 && !counted[depth - 1]) {
      ++shape[depth - 1];
    }
  }
  if (shape.empty()) shape.push_back(1);
  return shape;
}

Result<Tensor> parse_npy(std::string_view file, Arena& arena) {
  const auto bad = [](std::string text) { return fail(Code::kInvalidArgument, "NumPy file: " + std::move(text)); };
  if (file.size() < 12 || !file.starts_with("\x93NUMPY")) return bad("the magic bytes are missing");
  const bool version2 = file[6] >= 2;
  std::size_t header_size =
      static_cast<unsigned char>(file[8]) | static_cast<std::size_t>(static_cast<unsigned char>(file[9])) << 8;
  if (version2) {
    header_size |= static_cast<std::size_t>(static_cast<unsigned char>(file[10])) << 16 |
                   static_cast<std::size_t>(static_cast<unsigned char>(file[11])) << 24;
  }
  const std::size_t header_at = version2 ? 12 : 10;
  if (header_size > file.size() - header_at) return bad("the header is cut");
  const std::string_view header = file.substr(header_at, header_size);
  if (header.find("'fortran_order': False") == std::string_view::npos) return bad("only C order is supported");

  static const std::map<std::string_view, DataType> kTypes = {
      {"|b1", DataType::kBool}, {"|u1", DataType::kUint8}, {"<u2", DataType::kUint16}, {"<u4", DataType::kUint32},
      {"<u8", DataType::kUint64}, {"|i1", DataType::kInt8}, {"<i2", DataType::kInt16}, {"<i4", DataType::kInt32},
      {"<i8", DataType::kInt64}, {"<f2", DataType::kFp16}, {"<f4", DataType::kFp32}, {"<f8", DataType::kFp64}};
  const auto descr = header.find("'descr': '");
  const auto type = kTypes.find(descr == std::string_view::npos ? "" : header.substr(descr + 10, 3));
  if (type == kTypes.end()) return bad("the dtype is not a little-endian number or bool");

  const auto open = header.find("'shape': (");
  const auto close = header.find(')', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return bad("the shape is missing");
  std::string dims(header.substr(open + 10, close - open - 10));
  std::erase(dims, ' ');
  auto shape = parse_shape(dims);
  if (!shape) return bad(shape.error().message);
  const auto size = tensor_byte_size(type->second, *shape);
  if (!size) return bad(size.error().message);
  const std::string data(file.substr(header_at + header_size));
  if (data.size() != *size) return bad(fmt::format("{} bytes of data, expected {}", data.size(), *size));
  return filled_tensor(type->second, std::move(*shape), &data, arena);
}

Result<InferRequest> build_request(const RequestFlags& flags, const ModelMetadata& model, Arena& arena) {
  const auto values = parse_assignments(flags.inputs, "--input", model);
  if (!values) return std::unexpected(values.error());
  const auto shapes = parse_assignments(flags.shapes, "--shape", model);
  if (!shapes) return std::unexpected(shapes.error());

  InferRequest request;
  request.model_name = model.name;
  std::uint64_t seed = flags.seed;
  for (const TensorMetadata& input : model.inputs) {
    const auto value = values->find(input.name);
    if (value == values->end() && input.optional) continue;
    std::optional<Shape> shape;
    if (const auto text = shapes->find(input.name); text != shapes->end()) {
      auto parsed = parse_shape(text->second);
      if (!parsed)
        return fail(Code::kInvalidArgument, fmt::format("--shape {}: {}", input.name, parsed.error().message));
      shape = std::move(*parsed);
    }
    auto tensor = build_input(input, value == values->end() ? "random" : value->second, shape, seed++, arena);
    if (!tensor) return fail(Code::kInvalidArgument, fmt::format("--input {}: {}", input.name, tensor.error().message));
    request.inputs.push_back({input.name, std::move(*tensor), {}});
  }
  for (const std::string& name : flags.outputs) request.outputs.push_back({.name = name});
  return request;
}

}  // namespace sluice::cli
