// Builds an inference request from what a user types: NAME=VALUE for an input, NAME=1,3,224,224 for a shape.
// VALUE is `zeros`, `random`, `@file.npy` (NumPy format 1.0 and 2.0, C order), `@file` (raw bytes), or JSON
// (a number, a string, an array, nested or flat). An input that is not named is filled with random values; a
// free dimension that nothing fixes is 1.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/infer.h"
#include "tensor/buffer.h"

namespace sluice::cli {

struct RequestFlags {
  std::vector<std::string> inputs;  // "NAME=VALUE"
  std::vector<std::string> shapes;  // "NAME=1,3,224,224"
  std::vector<std::string> outputs; // names; empty = all
  std::uint64_t seed = 1;           // of random values
};

// kInvalidArgument names the flag and what is wrong with it.
Result<InferRequest> build_request(const RequestFlags& flags, const ModelMetadata& model, Arena& arena);

// The shape that the brackets of a JSON value have: "[[1,2],[3,4]]" -> [2,2], "5" -> [1].
Shape shape_of_json(std::string_view json);

// A NumPy file's bytes -> a tensor over a buffer of its own. kInvalidArgument names what is not supported.
Result<Tensor> parse_npy(std::string_view file, Arena& arena);

}  // namespace sluice::cli
