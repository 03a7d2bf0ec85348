// gRPC over HTTP/2 (doc/PROTOCOL-HTTP2.md): message framing, grpc-timeout, grpc-message.
//   frame: [ compressed flag 1 B | length 4 B big-endian | message ]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace sluice::grpc_wire {

inline constexpr std::size_t kPrefixBytes = 5;
std::array<char, kPrefixBytes> message_prefix(std::uint32_t length);

// "100m" = 100 ms. TimeoutValue is 1 to 8 digits, TimeoutUnit one of H M S m u n. nullopt: malformed.
// What is beyond Duration's range (292 years) is Duration::max().
std::optional<Duration> parse_timeout(std::string_view header);
// The coarsest unit that is exact in at most 8 digits, else the finest one that fits, rounded up. What is
// not positive becomes "1n", the shortest that the protocol allows.
std::string format_timeout(Duration timeout);

// Percent-encoding of grpc-message. Decoding never fails: what is not an escape stands for itself.
std::string encode_message(std::string_view text);
std::string decode_message(std::string_view header);

}  // namespace sluice::grpc_wire
