#include "net/h1/head.h"

#include <fmt/format.h>
#include <llhttp.h>

#include <cstring>

#include "net/field_text.h"

namespace sluice::net::h1 {

HeadScanner::State HeadScanner::bad(std::string_view problem) {
  problem_ = problem;
  return State::kBad;
}

HeadScanner::State HeadScanner::scan(Bytes buffer) {
  const std::string_view text = as_text(buffer);
  for (;;) {
    const std::size_t feed = text.find('\n', scanned_);
    if (feed == std::string_view::npos) {
      scanned_ = text.size();
      return State::kMore;
    }
    if (feed == line_ || text[feed - 1] != '\r') return bad("a line of the head ends without CR");
    const State state = end_line(text.substr(line_, feed - 1 - line_), feed + 1);
    if (state != State::kMore) return state;
  }
}

HeadScanner::State HeadScanner::end_line(std::string_view line, std::size_t next) {
  const bool first = line_ == begin_;
  if (line.find('\r') != std::string_view::npos) return bad("the head has a CR in the middle of a line");
  if (!first && !line.empty() && (line.front() == ' ' || line.front() == '\t')) {
    return bad("the head has a folded line");
  }
  line_ = scanned_ = next;
  if (!line.empty()) return State::kMore;
  if (!first) return State::kComplete;
  begin_ = next;
  return ++empty_lines_ > kMaxEmptyLines ? bad("too many empty lines before the start line") : State::kMore;
}

namespace {

// What llhttp's callbacks fill in. The head is parsed in one piece, so every span is whole.
struct Target {
  std::string* url = nullptr;
  Headers* headers = nullptr;
  std::string name;
};

Target& target_of(llhttp_t* parser) { return *static_cast<Target*>(parser->data); }

int refuse(llhttp_t* parser, const char* reason) {
  llhttp_set_error_reason(parser, reason);
  return HPE_USER;
}

// llhttp as it is packaged lets white space and bytes beyond ASCII pass here.
int on_url(llhttp_t* parser, const char* at, std::size_t size) {
  for (const char c : std::string_view(at, size)) {
    if (c <= ' ' || c == 0x7f) return refuse(parser, "the target has a character that is not allowed");
  }
  target_of(parser).url->append(at, size);
  return 0;
}

int on_field(llhttp_t* parser, const char* at, std::size_t size) {
  if (std::memchr(at, ' ', size)) return refuse(parser, "a field name has a space");
  Target& target = target_of(parser);
  target.name.clear();
  append_lower_case(target.name, {at, size});
  return 0;
}

int on_value(llhttp_t* parser, const char* at, std::size_t size) {
  std::string_view value(at, size);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  target_of(parser).headers->add(target_of(parser).name, value);
  return 0;
}

int on_headers_complete(llhttp_t*) { return HPE_PAUSED; }

const llhttp_settings_t& settings() {
  static const llhttp_settings_t instance = [] {
    llhttp_settings_t made;
    llhttp_settings_init(&made);
    made.on_url = on_url;
    made.on_header_field = on_field;
    made.on_header_value = on_value;
    made.on_headers_complete = on_headers_complete;
    return made;
  }();
  return instance;
}

HeadProblem syntax_problem(const llhttp_t& parser, llhttp_errno_t error, char first) {
  const char* reason = llhttp_get_error_reason(&parser);
  const std::string text = reason && *reason ? reason : llhttp_errno_name(error);
  switch (error) {
    case HPE_INVALID_METHOD:
      if (first >= 'A' && first <= 'z') return {501, "the request's method is not known"};
      return {400, "this is not HTTP"};
    case HPE_INVALID_VERSION: return {505, "the version is not HTTP/1.0 or HTTP/1.1"};
    default: return {400, fmt::format("malformed head: {}", text)};
  }
}

Method to_method(std::uint8_t method) {
  switch (method) {
    case HTTP_GET: return Method::kGet;
    case HTTP_HEAD: return Method::kHead;
    case HTTP_POST: return Method::kPost;
    case HTTP_PUT: return Method::kPut;
    case HTTP_DELETE: return Method::kDelete;
    case HTTP_PATCH: return Method::kPatch;
    case HTTP_OPTIONS: return Method::kOptions;
    default: return Method::kOther;
  }
}

template <class Visit>
void for_each_token(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view token = list.substr(0, comma);
    while (!token.empty() && (token.front() == ' ' || token.front() == '\t')) token.remove_prefix(1);
    while (!token.empty() && (token.back() == ' ' || token.back() == '\t')) token.remove_suffix(1);
    visit(token);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
}

struct FramingFields {
  int hosts = 0, content_lengths = 0, transfer_encodings = 0;
  bool close = false, keep_alive = false;
};

std::optional<HeadProblem> take_framing_field(std::string_view name, std::string_view value, Framing& framing,
                                              FramingFields& seen) {
  if (name == "host") {
    ++seen.hosts;
  } else if (name == "content-length") {
    framing.content_length = parse_content_length(value);
    if (!framing.content_length) return HeadProblem{400, "content-length is not a decimal number that fits 64 bits"};
    if (++seen.content_lengths > 1) return HeadProblem{400, "more than one content-length"};
  } else if (name == "transfer-encoding") {
    ++seen.transfer_encodings;
    framing.chunked = equals_ignoring_case(value, "chunked");
    if (!framing.chunked || seen.transfer_encodings > 1) {
      return HeadProblem{501, "the only transfer-encoding that is understood is one 'chunked'"};
    }
  } else if (name == "connection") {
    for_each_token(value, [&](std::string_view token) {
      seen.close |= equals_ignoring_case(token, "close");
      seen.keep_alive |= equals_ignoring_case(token, "keep-alive");
    });
  }
  return std::nullopt;
}

std::optional<HeadProblem> judge_framing(const Headers& headers, bool request, Framing& framing) {
  FramingFields seen;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto [name, value] = headers.at(i);
    if (auto problem = take_framing_field(name, value, framing, seen)) return problem;
  }
  if (framing.chunked && framing.content_length) {
    return HeadProblem{400, "both content-length and transfer-encoding"};
  }
  if (framing.chunked && framing.minor_version == 0) return HeadProblem{400, "transfer-encoding in HTTP/1.0"};
  if (request && (seen.hosts > 1 || (seen.hosts == 0 && framing.minor_version == 1))) {
    return HeadProblem{400, fmt::format("a request has exactly one host field, this one has {}", seen.hosts)};
  }
  framing.keep_alive = !seen.close && (framing.minor_version == 1 || seen.keep_alive);
  return std::nullopt;
}

std::optional<HeadProblem> parse(llhttp_t& parser, llhttp_type_t type, Bytes head, Target& target) {
  llhttp_init(&parser, type, &settings());
  parser.data = &target;
  const llhttp_errno_t error = llhttp_execute(&parser, as_text(head).data(), head.size());
  if (error != HPE_PAUSED) return syntax_problem(parser, error, as_text(head).front());
  if (parser.http_major != 1 || parser.http_minor > 1) {
    return HeadProblem{505, fmt::format("HTTP/{}.{} is neither HTTP/1.0 nor HTTP/1.1", parser.http_major,
                                        parser.http_minor)};
  }
  return std::nullopt;
}

// "http://host/path" asks for "/path" (RFC 9112, 3.2.2).
void make_origin_form(std::string& url) {
  const std::size_t scheme = url.find("://");
  if (url.starts_with('/') || scheme == std::string::npos) return;
  const std::size_t path = url.find('/', scheme + 3);
  url = path == std::string::npos ? "/" : url.substr(path);
}

}  // namespace

std::optional<HeadProblem> parse_request_head(Bytes head, std::string& url, Headers& headers, ParsedRequest& out) {
  llhttp_t parser;
  Target target{&url, &headers, {}};
  if (auto problem = parse(parser, HTTP_REQUEST, head, target)) return problem;
  out.method = to_method(parser.method);
  out.framing = Framing{.minor_version = parser.http_minor};
  make_origin_form(url);
  if (auto problem = judge_framing(headers, true, out.framing)) return problem;
  const auto expect = headers.get("expect");
  if (expect && !equals_ignoring_case(*expect, "100-continue")) {
    return HeadProblem{417, "the only expectation that is understood is '100-continue'"};
  }
  out.framing.expects_continue = expect.has_value() && out.framing.minor_version == 1;
  return std::nullopt;
}

std::optional<HeadProblem> parse_response_head(Bytes head, Headers& headers, ParsedResponse& out) {
  llhttp_t parser;
  Target target{nullptr, &headers, {}};
  if (auto problem = parse(parser, HTTP_RESPONSE, head, target)) return problem;
  out.status = parser.status_code;
  out.framing = Framing{.minor_version = parser.http_minor};
  return judge_framing(headers, false, out.framing);
}

}  // namespace sluice::net::h1
