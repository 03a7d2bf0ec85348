// The Open Inference Protocol's nouns as structs, whatever they travelled as (JSON, JSON with binary
// tensors, protobuf). Parsed once at the edge by wire/;
// nothing above it sees JSON or protobuf, and nothing here does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace sluice {

using ParameterValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;

struct Parameter {
  std::string name;
  ParameterValue value;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};
using Parameters = std::vector<Parameter>;  // in the order of the wire; names are unique

const ParameterValue* find_parameter(const Parameters& parameters, std::string_view name);

struct InputTensor {
  std::string name;
  Tensor tensor;  // data checked against datatype and shape
  Parameters parameters;
};

struct RequestedOutput {
  std::string name;
  Parameters parameters;
  std::optional<bool> binary;   // REST: binary_data; unset = the request's default
  std::uint32_t classification = 0;  // 0 = off, else the top N
};

struct InferRequest {
  std::string model_name;
  std::string model_version;  // "" = the server's choice
  std::string id;
  Parameters parameters;      // without those lifted into the fields below
  std::vector<InputTensor> inputs;
  std::vector<RequestedOutput> outputs;  // empty = all of them
  bool binary_output_default = false;    // REST: binary_data_output
  std::uint64_t priority = 0;            // 0 = default, 1 = highest
  std::uint64_t timeout_us = 0;          // the `timeout` parameter; 0 = none
};

struct OutputTensor {
  std::string name;
  Tensor tensor;
  Parameters parameters;
};

struct InferResponse {
  std::string model_name;
  std::string model_version;
  std::string id;
  Parameters parameters;
  std::vector<OutputTensor> outputs;
};

struct TensorMetadata {
  std::string name;
  DataType datatype = DataType::kInvalid;
  Shape shape;  // with the batch dimension, -1 = any
  bool optional = false;
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
};

struct ServerMetadata {
  std::string name = "sluice";
  std::string version;
  std::vector<std::string> extensions;
};

// Limits of a request, refused before anything is allocated for it.
struct RequestLimits {
  std::size_t max_inputs = 256;
  std::size_t max_outputs = 256;
  std::size_t max_parameters = 64;
  std::size_t max_name_bytes = 512;       // of a tensor, a parameter; model names follow kModelNamePattern
  std::size_t max_tensor_bytes = std::size_t{1} << 30;
  std::size_t max_json_depth = 100;
};

// A model's name or version as it may stand in a path: [A-Za-z0-9._-]+ (names), [0-9]+ (versions), not
// "." or "..", at most 256 bytes.
bool is_model_name(std::string_view text);
bool is_model_version(std::string_view text);

}  // namespace sluice
