// ONNX files of a node or two, written for tests: ModelProto in protobuf's wire format (onnx.proto gives the numbers).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace sluice::engine::tiny {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}
inline std::string number(int field, std::uint64_t value) { return varint(field << 3) + varint(value); }
inline std::string bytes(int field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}

// ONNX's element types.
inline constexpr int kFloat = 1, kString = 8;

// -1: a dimension of any size, each one of its own.
inline std::string value_info(std::string_view name, int element_type, const Shape& shape) {
  std::string dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::string any = bytes(2, std::string(name) + std::to_string(i));
    dims += bytes(1, shape[i] < 0 ? any : number(1, static_cast<std::uint64_t>(shape[i])));
  }
  return bytes(1, name) + bytes(2, bytes(1, number(1, element_type) + bytes(2, dims)));
}

inline std::string node(std::string_view op, std::initializer_list<std::string_view> inputs, std::string_view output) {
  std::string out;
  for (const std::string_view input : inputs) out += bytes(1, input);
  return out + bytes(2, output) + bytes(4, op);
}

struct Graph {
  std::vector<std::string> nodes, inputs, outputs;
};

inline std::string model(const Graph& graph) {
  std::string body;
  for (const std::string& each : graph.nodes) body += bytes(1, each);
  body += bytes(2, "tiny");
  for (const std::string& each : graph.inputs) body += bytes(11, each);
  for (const std::string& each : graph.outputs) body += bytes(12, each);
  return number(1, 8) + bytes(7, body) + bytes(8, bytes(1, "") + number(2, 17));
}

}  // namespace sluice::engine::tiny
