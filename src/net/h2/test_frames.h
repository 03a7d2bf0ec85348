// Frames of HTTP/2 (RFC 9113, 4.1) written and read by hand, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::net::h2 {

enum FrameType : std::uint8_t {
  kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kPing = 6, kGoAway = 7, kWindowUpdate = 8,
};
enum Flag : std::uint8_t { kNoFlags = 0, kEndStream = 1, kAck = 1, kEndHeaders = 4 };

inline std::string big_endian(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

inline std::string frame(std::uint8_t type, int flags, std::uint32_t stream, std::string_view payload) {
  std::string text = big_endian(static_cast<std::uint32_t>(payload.size()), 3);
  text.push_back(static_cast<char>(type));
  text.push_back(static_cast<char>(flags));
  return text.append(big_endian(stream)).append(payload);
}

// Fields as HPACK literals without indexing (RFC 7541, 6.2.2); texts of at most 16 KiB.
inline std::string field_block(const std::vector<std::pair<std::string, std::string>>& fields) {
  const auto string = [](const std::string& text) {
    constexpr std::size_t kPrefix = 127;
    std::string out;
    if (text.size() < kPrefix) {
      out.push_back(static_cast<char>(text.size()));
    } else {
      out.push_back(static_cast<char>(kPrefix));
      std::size_t rest = text.size() - kPrefix;
      for (; rest >= 128; rest /= 128) out.push_back(static_cast<char>(rest % 128 + 128));
      out.push_back(static_cast<char>(rest));
    }
    return out + text;
  };
  std::string block;
  for (const auto& [name, value] : fields) block.append(1, '\0').append(string(name)).append(string(value));
  return block;
}

using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string request(std::uint32_t stream, std::string method, std::string path, int flags,
                           const Fields& more = {}) {
  Fields fields = {
      {":method", std::move(method)}, {":scheme", "http"}, {":authority", "a"}, {":path", std::move(path)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return frame(kHeaders, flags | kEndHeaders, stream, field_block(fields));
}

inline std::string opening() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, kNoFlags, 0, ""); }

struct Frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;

  std::uint32_t number(std::size_t at = 0) const {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4 && i < payload.size(); ++i) {
      value = value << 8 | static_cast<unsigned char>(payload[i]);
    }
    return value;
  }
};

// The whole frames in `text`.
inline std::vector<Frame> parse_frames(std::string_view text) {
  constexpr std::size_t kHead = 9;
  std::vector<Frame> frames;
  while (text.size() >= kHead) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (text.size() < kHead + length) break;
    const std::uint32_t stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
    frames.push_back({static_cast<std::uint8_t>(byte(3)), static_cast<std::uint8_t>(byte(4)), stream,
                      std::string(text.substr(kHead, length))});
    text.remove_prefix(kHead + length);
  }
  return frames;
}

}  // namespace sluice::net::h2
