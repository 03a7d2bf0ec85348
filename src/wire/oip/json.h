// The Open Inference Protocol over REST: bytes <-> structs.
//
// A body is JSON alone, or (Inference-Header-Content-Length = n) n bytes of JSON followed by the raw
// tensors of those inputs that carry `binary_data_size`, in order, to the last byte. n = 0 is the raw
// mode: the whole body is the one input's data. Rules and parameter names: Triton's extensions
// "binary tensor data" and "classification"; policy on NaN in JSON: refused on input, written as null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/infer.h"

namespace sluice::oip {

struct JsonBody {
  std::string_view json;    // the JSON part (all of the body without the header)
  Tensor binary;            // the rest, as one kUint8 tensor whose owner keeps it; empty without the header
};

// `signature` is the model's inputs (for the raw mode and to report unknown names early).
// Numbers that do not fit the datatype, a count that differs from the shape, duplicate names, unknown
// datatypes, FP16/BF16 in JSON, left-over bytes, depth: kInvalidArgument naming input, expected, given.
Result<InferRequest> parse_infer_request(const JsonBody& body, Arena& arena, const RequestLimits& limits);
// Raw mode: one input whose shape has at most one variable dimension (BYTES: shape [1]).
Result<InferRequest> parse_raw_request(const Tensor& body, const ModelMetadata& model, Arena& arena);

struct EncodedJson {
  Payload payload;                               // JSON first, then the binary tensors, uncopied
  std::optional<std::size_t> json_length;        // set when some output is binary
};
// `request` decides which outputs go binary. FP16 and BF16 always do.
EncodedJson encode_infer_response(const InferResponse& response, const InferRequest& request);

// The client's side (sluice infer, the bench).
EncodedJson encode_infer_request(const InferRequest& request, bool binary);
Result<InferResponse> parse_infer_response(const JsonBody& body, Arena& arena, const RequestLimits& limits);

std::string encode_error(std::string_view message);  // {"error":"..."}
std::string encode_server_metadata(const ServerMetadata& metadata);
std::string encode_model_metadata(const ModelMetadata& metadata);
Result<ModelMetadata> parse_model_metadata(std::string_view json);  // the client's side

}  // namespace sluice::oip
