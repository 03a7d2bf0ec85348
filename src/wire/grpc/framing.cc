#include "wire/grpc/framing.h"

#include <fmt/format.h>

namespace sluice::grpc_wire {
namespace {

struct TimeoutUnit {
  char letter;
  std::int64_t ns;
};
// Coarsest first.
constexpr std::array<TimeoutUnit, 6> kUnits = {{{'H', 3'600'000'000'000},
                                                {'M', 60'000'000'000},
                                                {'S', 1'000'000'000},
                                                {'m', 1'000'000},
                                                {'u', 1'000},
                                                {'n', 1}}};
constexpr std::size_t kMaxTimeoutDigits = 8;
constexpr std::int64_t kMaxTimeoutValue = 99'999'999;

bool is_plain(unsigned char c) { return c >= 0x20 && c <= 0x7E && c != '%'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::array<char, kPrefixBytes> message_prefix(std::uint32_t length) {
  return {0, static_cast<char>(length >> 24), static_cast<char>(length >> 16), static_cast<char>(length >> 8),
          static_cast<char>(length)};
}

std::optional<Duration> parse_timeout(std::string_view header) {
  if (header.size() < 2 || header.size() > kMaxTimeoutDigits + 1) return std::nullopt;
  std::int64_t value = 0;
  const char* end = header.data() + header.size() - 1;
  for (const char* c = header.data(); c != end; ++c) {
    if (*c < '0' || *c > '9') return std::nullopt;
    value = value * 10 + (*c - '0');
  }
  for (const TimeoutUnit& unit : kUnits) {
    if (unit.letter != header.back()) continue;
    std::int64_t ns = 0;
    if (__builtin_mul_overflow(value, unit.ns, &ns)) return Duration::max();
    return Duration(ns);
  }
  return std::nullopt;
}

std::string format_timeout(Duration timeout) {
  const std::int64_t ns = to_ns(timeout);
  if (ns <= 0) return "1n";  // the value is positive by the protocol; this one is over on arrival
  for (const TimeoutUnit& unit : kUnits) {
    if (ns % unit.ns == 0 && ns / unit.ns <= kMaxTimeoutValue) return fmt::format("{}{}", ns / unit.ns, unit.letter);
  }
  // Not exact in any unit that fits: the finest one that does, rounded up. Hours always fit.
  for (auto unit = kUnits.rbegin(); unit != kUnits.rend(); ++unit) {
    const std::int64_t value = ns / unit->ns + (ns % unit->ns != 0 ? 1 : 0);
    if (value <= kMaxTimeoutValue) return fmt::format("{}{}", value, unit->letter);
  }
  return fmt::format("{}H", kMaxTimeoutValue);
}

std::string encode_message(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string decode_message(std::string_view header) {
  std::string out;
  out.reserve(header.size());
  for (std::size_t i = 0; i < header.size(); ++i) {
    const int high = header[i] == '%' && i + 2 < header.size() ? hex_digit(header[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(header[i + 2]) : -1;
    if (low < 0) {
      out += header[i];  // a '%' that starts no escape stands for itself
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace sluice::grpc_wire
