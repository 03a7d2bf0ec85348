// Errors: one small set of codes (gRPC's canonical ones), a message that names the offending value,
// what was expected and the limit. Mapped once to HTTP, gRPC or OpenAI at the edge (src/api).
// Values, not exceptions: third-party exceptions stop where they are raised (a bad_alloc included).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

// Numbers are gRPC's (grpc/doc/statuscodes.md) and travel in `grpc-status`.
enum class Code : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number outside the set.
std::string_view code_name(Code code);

struct [[nodiscard]] Error {
  Code code = Code::kUnknown;
  std::string message;
  // Seconds after which a retry makes sense; 0 = nothing to say. Becomes Retry-After / RetryInfo.
  std::uint32_t retry_after_s = 0;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// `return fail(Code::kNotFound, fmt::format("model '{}' ...", name));`
inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

}  // namespace sluice
