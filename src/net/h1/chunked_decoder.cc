#include "net/h1/chunked_decoder.h"

#include <algorithm>

#include "net/field_text.h"

namespace sluice::net::h1 {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; }

}  // namespace

void ChunkedDecoder::bad(std::string_view problem) {
  state_ = State::kBad;
  problem_ = problem;
}

ChunkedDecoder::Step ChunkedDecoder::next(Bytes in) {
  Step step;
  for (const std::byte byte : in) {
    if (state_ != State::kMore) break;
    if (at_ == At::kData) {
      step.data = in.subspan(step.framing, std::min<std::uint64_t>(left_, in.size() - step.framing));
      break;
    }
    ++step.framing;
    if (++overhead_bytes_ > kMaxOverheadBytes + 8 * data_bytes_) bad("too many bytes of chunk framing");
    if (state_ == State::kMore) eat(static_cast<char>(byte));
  }
  return step;
}

void ChunkedDecoder::take(std::size_t bytes) {
  left_ -= bytes;
  data_bytes_ += bytes;
  if (left_ == 0 && at_ == At::kData) at_ = At::kDataReturn;
}

void ChunkedDecoder::eat(char c) {
  switch (at_) {
    case At::kSize: return eat_size(c);
    case At::kExtension:
      if (c == '\r') {
        at_ = At::kSizeFeed;
      } else if (is_control(c)) {
        bad("a control character in a chunk extension");
      }
      return;
    case At::kSizeFeed:
      if (c != '\n') return bad("a chunk size ends without LF");
      at_ = left_ > 0 ? At::kData : At::kTrailer;
      digits_ = 0;
      return;
    case At::kDataReturn:
      if (c != '\r') return bad("a chunk is longer than its size says");
      at_ = At::kDataFeed;
      return;
    case At::kDataFeed:
      if (c != '\n') return bad("a chunk ends without LF");
      at_ = At::kSize;
      return;
    case At::kTrailer:
      if (c == '\r') {
        at_ = At::kTrailerFeed;
      } else if (is_control(c)) {
        bad("a control character in a trailer");
      } else if (trailer_.size() >= kMaxTrailerBytes) {
        bad("too many bytes of trailers");
      } else {
        trailer_.push_back(c);
      }
      return;
    case At::kTrailerFeed: return eat_trailer_feed(c);
    case At::kData: return;  // not reached: data is never eaten
  }
}

void ChunkedDecoder::eat_size(char c) {
  const int digit = hex_digit(c);
  if (digit >= 0) {
    if (++digits_ > kMaxSizeDigits) return bad("a chunk size has too many digits");
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return;
  }
  if (digits_ == 0) return bad("a chunk size is missing");
  if (c == '\r') {
    at_ = At::kSizeFeed;
  } else if (c == ';' || c == ' ' || c == '\t') {
    at_ = At::kExtension;
  } else {
    bad("a chunk size is not hexadecimal");
  }
}

void ChunkedDecoder::eat_trailer_feed(char c) {
  if (c != '\n') return bad("a trailer ends without LF");
  const std::string_view line = std::string_view(trailer_).substr(trailer_line_);
  if (line.empty()) {
    state_ = State::kEnd;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() || name.find_first_of(" \t") != std::string_view::npos) {
    return bad("a trailer is not 'name: value'");
  }
  trailer_.push_back('\n');
  trailer_line_ = trailer_.size();
  at_ = At::kTrailer;
}

void ChunkedDecoder::trailers(Headers& into) const {
  std::string name;
  for (std::string_view text = trailer_; !text.empty();) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t colon = line.find(':');
    name.clear();
    append_lower_case(name, line.substr(0, colon));
    line.remove_prefix(colon + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    into.add(name, line);
  }
}

}  // namespace sluice::net::h1
