// ModelInferRequest and ModelInferResponse without their raw contents, bytes -> structs. The second half of
// InferReader (infer_reader.h), which takes the raw contents out while the message arrives.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/infer.h"
#include "wire/grpc/infer_reader.h"

namespace sluice::grpc_wire {

// Field numbers of raw_input_contents and raw_output_contents.
inline constexpr std::uint32_t kRawInputField = 7;
inline constexpr std::uint32_t kRawOutputField = 6;

// `raw` holds the raw contents in the order of the wire; none at all: the tensors carry typed contents.
Result<InferRequest> read_request(std::string_view metadata, std::vector<BufferRef> raw, Arena& arena,
                                  const RequestLimits& limits);
Result<InferResponse> read_response(std::string_view metadata, std::vector<BufferRef> raw, Arena& arena,
                                    const RequestLimits& limits);

}  // namespace sluice::grpc_wire
