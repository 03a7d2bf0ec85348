// The rules of an inference request that hold whatever it travelled as (JSON, protobuf): names, duplicates,
// limits, and which parameters are reserved. The readers of oip/ and grpc/ call these; nobody else does.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/infer.h"

namespace sluice::infer_rules {

bool is_utf8(std::string_view text);

// `what` names the field in the error. UTF-8, at most limits.max_name_bytes; a name is not empty.
Status check_text(std::string_view what, std::string_view text, const RequestLimits& limits);
Status check_name(std::string_view what, std::string_view name, const RequestLimits& limits);

// Appends; refuses a name that is there already, one too long, one more than limits.max_parameters.
Status add_parameter(Parameters& parameters, Parameter parameter, const RequestLimits& limits);

// The last step of reading: moves reserved parameters into their fields, refuses those that are reserved and
// have none, shared memory, and names that occur twice.
Status finish(InferRequest& request);
Status finish(InferResponse& response);

// The way back: the parameters of the struct and those that were lifted out of it. `binary` adds what only
// REST knows (binary_data_output, binary_data).
Parameters wire_parameters(const InferRequest& request, bool binary);
Parameters wire_parameters(const RequestedOutput& output, bool binary);

// "input 'x': " before the message.
Error in_tensor(std::string_view kind, std::string_view name, Error error);

}  // namespace sluice::infer_rules
