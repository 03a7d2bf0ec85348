// config.pbtxt (Triton's model_config.proto, protobuf text format) <-> ModelConfig. Every field of that schema
// parses. Those that only affect speed and have no meaning here become `warnings`; those that would change
// results and are not supported are refused by name.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "model/model_config.h"

namespace sluice {

// kInvalidArgument: "config.pbtxt:12:3: ..." for the place and the name of what is wrong;
// kUnimplemented: a field that would change results and is not supported, by name.
Result<ModelConfig> parse_model_config(std::string_view text);
// The text form of the (completed) configuration, for `sluice config check` and /config.
std::string format_model_config(const ModelConfig& config);
std::string format_model_config_json(const ModelConfig& config);

}  // namespace sluice
