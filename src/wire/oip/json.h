// The Open Inference Protocol over REST: bytes <-> structs.
//
// A body is JSON alone, or (Inference-Header-Content-Length = n) n bytes of JSON followed by the raw
// tensors of those inputs that carry `binary_data_size`, in order, to the last byte. n = 0 is the raw
// mode: the whole body is the one input's data. Rules and parameter names: Triton's extensions
// "binary tensor data" and "classification"; policy on NaN in JSON: refused on input, written as null (which
// the client's side reads as NaN).
//
// The parser is simdjson's DOM: on arrays of numbers it is as fast as its on-demand walk, checks the whole
// document, bounds depth without recursion, and lets fields come in any order. It wants kJsonPadding readable
// bytes (of any value) behind the text; without them the text is copied, which costs 5 % of a large parse.
// A document takes up to 12 bytes of memory a byte while it is parsed, hence kMaxJsonBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/infer.h"

namespace sluice::oip {

inline constexpr std::size_t kJsonPadding = 64;
inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;  // more travels as binary tensors

struct JsonBody {
  std::string_view json;    // the JSON part (all of the body without the header)
  Tensor binary;            // the rest, as one kUint8 tensor whose owner keeps it; empty without the header
  std::size_t readable_past_json = 0;  // bytes behind `json` that may be read: from kJsonPadding on, no copy
};

// Numbers that do not fit the datatype, a count that differs from the shape, duplicate names, unknown
// datatypes, FP16/BF16 in JSON, left-over bytes, depth: kInvalidArgument naming input, expected, given.
// Binary tensors are views of body.binary, unless that leaves them unaligned for their element: then copies.
// Fields that are not known are let pass; model_name and model_version are the caller's to fill in.
Result<InferRequest> parse_infer_request(const JsonBody& body, Arena& arena, const RequestLimits& limits);
// Raw mode: one input whose shape has at most one variable dimension (BYTES: shape [1]). All outputs are binary.
Result<InferRequest> parse_raw_request(const Tensor& body, const ModelMetadata& model, Arena& arena);

struct EncodedJson {
  Payload payload;                               // JSON first, then the binary tensors, uncopied
  std::optional<std::size_t> json_length;        // set when some output is binary
};
// `request` decides which outputs go binary. FP16 and BF16 always do. BYTES in JSON are text: what is not UTF-8
// is replaced. Small binary tensors share the JSON's slice, the others have one of their own, uncopied.
EncodedJson encode_infer_response(const InferResponse& response, const InferRequest& request);

// The client's side (sluice infer, the bench).
EncodedJson encode_infer_request(const InferRequest& request, bool binary);
Result<InferResponse> parse_infer_response(const JsonBody& body, Arena& arena, const RequestLimits& limits);

std::string encode_error(std::string_view message);  // {"error":"..."}
std::string parse_error(std::string_view body);      // its message; a body that is no such object, as it is
std::string encode_server_metadata(const ServerMetadata& metadata);
std::string encode_model_metadata(const ModelMetadata& metadata);
Result<ModelMetadata> parse_model_metadata(std::string_view json);  // the client's side

}  // namespace sluice::oip
