// For tests: random requests and responses that are valid, and their comparison by value.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/random.h"
#include "model/infer.h"

namespace sluice {

inline constexpr DataType kAllDataTypes[] = {
    DataType::kBool, DataType::kUint8, DataType::kUint16, DataType::kUint32, DataType::kUint64,
    DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,   DataType::kFp16,
    DataType::kFp32, DataType::kFp64,  DataType::kBytes, DataType::kBf16};

inline std::string random_text(Random& random, std::size_t max_size) {
  static constexpr std::string_view kAlphabet = "abcXYZ019_-. /\"\\{}%";
  std::string text;
  for (std::size_t n = random.below(max_size + 1); n > 0; --n) text += kAlphabet[random.below(kAlphabet.size())];
  return text;
}

// A tensor of its own memory in the arena. Floats are finite, so that JSON can carry them; BYTES are text.
inline Tensor make_tensor(Arena& arena, DataType type, Shape shape, const std::string& bytes) {
  auto buffer = arena.allocate(bytes.size());
  EXPECT_TRUE(buffer);
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return Tensor{type, std::move(shape), std::as_const(*buffer).bytes(), *buffer};
}

template <class T>
void append_raw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

inline void append_bytes_element(std::string& out, std::string_view text) {
  append_raw(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

inline std::string random_elements(Random& random, DataType type, std::int64_t count) {
  std::string out;
  for (std::int64_t i = 0; i < count; ++i) {
    switch (type) {
      case DataType::kBool: append_raw(out, static_cast<std::uint8_t>(random.below(2))); break;
      case DataType::kFp32: append_raw(out, static_cast<float>((random.unit() - 0.5) * random.exponential(1e6))); break;
      case DataType::kFp64: append_raw(out, (random.unit() - 0.5) * random.exponential(1e100)); break;
      case DataType::kBytes: append_bytes_element(out, random_text(random, 20)); break;
      default:
        for (std::size_t b = 0; b < element_size(type); ++b) out += static_cast<char>(random.next());
    }
  }
  return out;
}

inline Tensor random_tensor(Arena& arena, Random& random, DataType type) {
  Shape shape;
  std::int64_t count = 1;
  for (std::size_t rank = random.below(4); rank > 0; --rank) {
    shape.push_back(static_cast<std::int64_t>(random.below(20) == 0 ? 0 : 1 + random.below(9)));
    count *= shape.back();
  }
  if (random.below(16) == 0) {  // beyond what is copied into the text
    shape = {3, 700};
    count = 2100;
  }
  const std::string bytes = random_elements(random, type, count);
  return make_tensor(arena, type, std::move(shape), bytes);
}

inline Parameters random_parameters(Random& random) {
  Parameters out;
  for (std::size_t n = random.below(4); n > 0; --n) {
    ParameterValue value;
    switch (random.below(5)) {
      case 0: value = random.chance(0.5); break;
      case 1: value = -1 - static_cast<std::int64_t>(random.next() >> 1); break;
      case 2: value = random.next() | std::uint64_t{1} << 63; break;  // JSON reads smaller ones as signed
      case 3: value = random.unit() + 0.5; break;
      default: value = random_text(random, 12);
    }
    out.push_back({"p" + std::to_string(n) + random_text(random, 5), value});
  }
  return out;
}

inline DataType random_datatype(Random& random) { return kAllDataTypes[random.below(std::size(kAllDataTypes))]; }

inline InferRequest random_request(Arena& arena, Random& random) {
  InferRequest request;
  request.model_name = "m" + random_text(random, 20);
  request.model_version = random.chance(0.5) ? "3" : "";
  request.id = random_text(random, 40);
  request.parameters = random_parameters(random);
  for (std::size_t n = 1 + random.below(4); n > 0; --n) {
    request.inputs.push_back({"in" + std::to_string(n), random_tensor(arena, random, random_datatype(random)),
                              random_parameters(random)});
  }
  for (std::size_t n = random.below(3); n > 0; --n) {
    RequestedOutput output{.name = "out" + std::to_string(n), .parameters = random_parameters(random)};
    output.classification = static_cast<std::uint32_t>(random.below(3));
    request.outputs.push_back(std::move(output));
  }
  request.priority = random.below(3);
  request.timeout_us = random.below(2) * random.next();
  return request;
}

inline InferResponse random_response(Arena& arena, Random& random) {
  InferResponse response{.model_name = "m", .model_version = "1", .id = random_text(random, 10),
                         .parameters = random_parameters(random)};
  for (std::size_t n = random.below(4); n > 0; --n) {
    response.outputs.push_back({"out" + std::to_string(n), random_tensor(arena, random, random_datatype(random)),
                                random_parameters(random)});
  }
  return response;
}

template <class Item>
void expect_same_tensors(const std::vector<Item>& a, const std::vector<Item>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].tensor.datatype, b[i].tensor.datatype) << a[i].name;
    EXPECT_EQ(a[i].tensor.shape, b[i].tensor.shape) << a[i].name;
    EXPECT_EQ(as_text(a[i].tensor.data), as_text(b[i].tensor.data))
        << a[i].name << " " << datatype_name(a[i].tensor.datatype);
    EXPECT_TRUE(a[i].parameters == b[i].parameters) << a[i].name;
  }
}

inline void expect_same(const InferRequest& a, const InferRequest& b) {
  EXPECT_EQ(a.model_name, b.model_name);
  EXPECT_EQ(a.model_version, b.model_version);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.timeout_us, b.timeout_us);
  EXPECT_EQ(a.binary_output_default, b.binary_output_default);
  EXPECT_TRUE(a.parameters == b.parameters);
  expect_same_tensors(a.inputs, b.inputs);
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_EQ(a.outputs[i].name, b.outputs[i].name);
    EXPECT_EQ(a.outputs[i].binary, b.outputs[i].binary);
    EXPECT_EQ(a.outputs[i].classification, b.outputs[i].classification);
    EXPECT_TRUE(a.outputs[i].parameters == b.outputs[i].parameters);
  }
}

inline void expect_same(const InferResponse& a, const InferResponse& b) {
  EXPECT_EQ(a.model_name, b.model_name);
  EXPECT_EQ(a.model_version, b.model_version);
  EXPECT_EQ(a.id, b.id);
  EXPECT_TRUE(a.parameters == b.parameters);
  expect_same_tensors(a.outputs, b.outputs);
}

inline std::string joined(const Payload& payload) {
  std::string out;
  for (const Slice& slice : payload) out.append(as_text(slice.view()));
  return out;
}

}  // namespace sluice
