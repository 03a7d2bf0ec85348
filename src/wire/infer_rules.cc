#include "wire/infer_rules.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstring>
#include <limits>
#include <optional>

namespace sluice::infer_rules {
namespace {

// Errors quote what a client sent; a hostile name is cut, not repeated in full.
constexpr std::size_t kMaxQuotedBytes = 64;

std::string quote(std::string_view text) {
  if (text.size() <= kMaxQuotedBytes) return fmt::format("'{}'", text);
  return fmt::format("'{}...' ({} bytes)", text.substr(0, kMaxQuotedBytes), text.size());
}

bool is_ascii(std::string_view text) {
  std::uint64_t high = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    high |= word;
  }
  for (; i < text.size(); ++i) high |= static_cast<unsigned char>(text[i]);
  return (high & 0x8080808080808080U) == 0;
}

std::optional<std::uint64_t> as_count(const ParameterValue& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value); number && *number >= 0) {
    return static_cast<std::uint64_t>(*number);
  }
  return std::nullopt;
}

Status not_a(std::string_view name, std::string_view expected) {
  return fail(Code::kInvalidArgument, fmt::format("parameter '{}' must be {}", name, expected));
}

Status lift_count(const Parameter& parameter, std::uint64_t& out) {
  const auto count = as_count(parameter.value);
  if (!count) return not_a(parameter.name, "an integer that is not negative");
  out = *count;
  return {};
}

template <class Bool>
Status lift_bool(const Parameter& parameter, Bool& out) {
  const auto* value = std::get_if<bool>(&parameter.value);
  if (!value) return not_a(parameter.name, "true or false");
  out = *value;
  return {};
}

// Runs `lift` on each parameter; it says whether the parameter has been taken out.
template <class Lift>
Status lift_each(Parameters& parameters, Lift lift) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Result<bool> lifted = lift(parameters[i]);
    if (!lifted) return fail(lifted.error());
    if (*lifted) continue;
    if (kept != i) parameters[kept] = std::move(parameters[i]);
    ++kept;
  }
  parameters.resize(kept);
  return {};
}

Result<bool> taken(Status status) {
  if (!status) return fail(std::move(status.error()));
  return true;
}

constexpr std::string_view kReservedPrefix = "triton_";
constexpr std::string_view kEmptyFinalResponse = "triton_enable_empty_final_response";

Result<bool> lift_from_request(const Parameter& parameter, InferRequest& request) {
  const std::string_view name = parameter.name;
  if (name == "priority") return taken(lift_count(parameter, request.priority));
  if (name == "timeout") return taken(lift_count(parameter, request.timeout_us));
  if (name == "binary_data_output") return taken(lift_bool(parameter, request.binary_output_default));
  if (name.starts_with(kReservedPrefix) && name != kEmptyFinalResponse) {
    return fail(Code::kInvalidArgument, fmt::format("parameter {}: names that start with '{}' are reserved",
                                                    quote(name), kReservedPrefix));
  }
  return false;
}

Result<bool> lift_from_output(const Parameter& parameter, RequestedOutput& output) {
  if (parameter.name == "binary_data") return taken(lift_bool(parameter, output.binary));
  if (parameter.name != "classification") return false;
  std::uint64_t count = 0;
  if (auto status = lift_count(parameter, count); !status) return taken(std::move(status));
  if (count > std::numeric_limits<std::uint32_t>::max()) return taken(not_a("classification", "below 2^32"));
  output.classification = static_cast<std::uint32_t>(count);
  return true;
}

template <class Tensor>
Status refuse_shared_memory(const Tensor& tensor, std::string_view kind) {
  for (const Parameter& parameter : tensor.parameters) {
    if (parameter.name.starts_with("shared_memory_")) {
      return fail(Code::kUnimplemented,
                  fmt::format("{} {}: shared memory is not supported", kind, quote(tensor.name)));
    }
  }
  return {};
}

template <class Items>
Status check_unique(const Items& items, std::string_view kind) {
  if (items.size() < 2) return {};
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(item.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(Code::kInvalidArgument, fmt::format("{} {} occurs more than once", kind, quote(*twice)));
}

}  // namespace

bool is_utf8(std::string_view text) { return is_ascii(text) || simdjson::validate_utf8(text.data(), text.size()); }

Status check_text(std::string_view what, std::string_view text, const RequestLimits& limits) {
  if (text.size() > limits.max_name_bytes) {
    return fail(Code::kInvalidArgument,
                fmt::format("{} has {} bytes, the limit is {}", what, text.size(), limits.max_name_bytes));
  }
  if (!is_utf8(text)) return fail(Code::kInvalidArgument, fmt::format("{} is not UTF-8", what));
  return {};
}

Status check_name(std::string_view what, std::string_view name, const RequestLimits& limits) {
  if (name.empty()) return fail(Code::kInvalidArgument, fmt::format("{} is missing or empty", what));
  return check_text(what, name, limits);
}

Status add_parameter(Parameters& parameters, Parameter parameter, const RequestLimits& limits) {
  if (auto status = check_name("a parameter's name", parameter.name, limits); !status) return status;
  if (parameters.size() >= limits.max_parameters) {
    return fail(Code::kInvalidArgument, fmt::format("more than {} parameters", limits.max_parameters));
  }
  if (find_parameter(parameters, parameter.name) != nullptr) {
    return fail(Code::kInvalidArgument, fmt::format("parameter {} occurs more than once", quote(parameter.name)));
  }
  parameters.push_back(std::move(parameter));
  return {};
}

Status finish(InferRequest& request) {
  auto status = lift_each(request.parameters, [&](const Parameter& p) { return lift_from_request(p, request); });
  if (!status) return status;
  for (RequestedOutput& output : request.outputs) {
    status = lift_each(output.parameters, [&](const Parameter& p) { return lift_from_output(p, output); });
    if (!status) return fail(in_tensor("output", output.name, std::move(status.error())));
    if (status = refuse_shared_memory(output, "output"); !status) return status;
  }
  for (const InputTensor& input : request.inputs) {
    if (status = refuse_shared_memory(input, "input"); !status) return status;
  }
  if (status = check_unique(request.inputs, "input"); !status) return status;
  return check_unique(request.outputs, "output");
}

Status finish(InferResponse& response) { return check_unique(response.outputs, "output"); }

Parameters wire_parameters(const InferRequest& request, bool binary) {
  Parameters out = request.parameters;
  if (request.priority != 0) out.push_back({"priority", request.priority});
  if (request.timeout_us != 0) out.push_back({"timeout", request.timeout_us});
  if (binary && request.binary_output_default) out.push_back({"binary_data_output", true});
  return out;
}

Parameters wire_parameters(const RequestedOutput& output, bool binary) {
  Parameters out = output.parameters;
  if (output.classification != 0) out.push_back({"classification", std::int64_t{output.classification}});
  if (binary && output.binary) out.push_back({"binary_data", *output.binary});
  return out;
}

Error in_tensor(std::string_view kind, std::string_view name, Error error) {
  error.message = fmt::format("{} {}: {}", kind, quote(name), error.message);
  return error;
}

}  // namespace sluice::infer_rules
