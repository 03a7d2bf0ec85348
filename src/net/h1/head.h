// The head of an HTTP/1.1 message (RFC 9112): where it ends, what it says, and how its body is framed.
//
// HeadScanner finds the end and refuses what lets two readers of the same bytes disagree (bare CR or LF,
// folded lines); llhttp checks the syntax of the whole head at once; the framing fields are then judged here,
// strictly: one Content-Length or exactly "Transfer-Encoding: chunked", never both.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "net/http.h"

namespace sluice::net::h1 {

class HeadScanner {
 public:
  enum class State : std::uint8_t { kMore, kComplete, kBad };

  // `buffer` starts where the message starts and has grown, or is the same, since the last call.
  State scan(Bytes buffer);
  void reset() { *this = HeadScanner(); }

  // After kComplete: the head without empty lines before it; the body starts at end().
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return line_; }
  std::string_view problem() const { return problem_; }

 private:
  static constexpr int kMaxEmptyLines = 4;  // before the start line (RFC 9112, 2.2)
  State bad(std::string_view problem);
  State end_line(std::string_view line, std::size_t next);

  std::size_t begin_ = 0;
  std::size_t line_ = 0;     // where the present line starts
  std::size_t scanned_ = 0;  // no line feed in [line_, scanned_)
  int empty_lines_ = 0;
  std::string_view problem_;
};

// What the start line and the framing fields say.
struct Framing {
  int minor_version = 1;
  bool keep_alive = true;
  bool chunked = false;
  bool expects_continue = false;
  std::optional<std::uint64_t> content_length;
};

// Why a head is refused, with the status that says so.
struct HeadProblem {
  int status = 400;
  std::string message;
};

struct ParsedRequest {
  Method method = Method::kOther;
  Framing framing;
};
// Appends to target and headers (names in lower case), which the caller has cleared.
std::optional<HeadProblem> parse_request_head(Bytes head, std::string& target, Headers& headers, ParsedRequest& out);

struct ParsedResponse {
  int status = 0;
  Framing framing;
};
std::optional<HeadProblem> parse_response_head(Bytes head, Headers& headers, ParsedResponse& out);

}  // namespace sluice::net::h1
