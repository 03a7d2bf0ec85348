// The chunked transfer coding (RFC 9112, 7.1), decoded strictly and in whatever pieces it arrives:
//
//   size [;extensions] CRLF  data CRLF  ...  0 CRLF  *(trailer CRLF)  CRLF
//
// The decoder copies no data: it says which bytes are framing and which are the body's.
// Limits: framing of at most kMaxOverheadBytes plus eight times the data (a sender of one-byte chunks is slow,
// not refused); trailers, which are kept, of at most kMaxTrailerBytes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "net/http.h"

namespace sluice::net::h1 {

class ChunkedDecoder {
 public:
  enum class State : std::uint8_t { kMore, kEnd, kBad };
  struct Step {
    std::size_t framing = 0;  // bytes at the front that were consumed
    Bytes data;               // after them: the body's; say how many were taken with take()
  };

  // Goes on with `in`, which starts where the last step (and take()) ended.
  Step next(Bytes in);
  void take(std::size_t bytes);

  State state() const { return state_; }
  std::string_view problem() const { return problem_; }
  // After kEnd: the trailer fields, names in lower case.
  void trailers(Headers& into) const;
  void reset() { *this = ChunkedDecoder(); }

 private:
  enum class At : std::uint8_t { kSize, kExtension, kSizeFeed, kData, kDataReturn, kDataFeed, kTrailer, kTrailerFeed };
  static constexpr std::uint64_t kMaxOverheadBytes = 16 * 1024;
  static constexpr std::size_t kMaxTrailerBytes = 16 * 1024;
  static constexpr int kMaxSizeDigits = 15;

  void bad(std::string_view problem);
  void eat(char c);
  void eat_size(char c);
  void eat_trailer_feed(char c);

  State state_ = State::kMore;
  At at_ = At::kSize;
  int digits_ = 0;
  std::uint64_t left_ = 0;  // of the present chunk
  std::uint64_t data_bytes_ = 0;
  std::uint64_t overhead_bytes_ = 0;
  std::size_t trailer_line_ = 0;  // where the present line starts in trailer_
  std::string trailer_;
  std::string_view problem_;
};

}  // namespace sluice::net::h1
