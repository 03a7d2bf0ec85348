#include "stats/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/json_writer.h"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error", "off"};
constexpr std::size_t kMaxTextBytes = 8192;  // of a message or a value; the rest is left out

std::string_view shortened(std::string_view text) { return text.substr(0, kMaxTextBytes); }

// RFC 3339 in UTC, with milliseconds.
std::string timestamp(std::int64_t wall_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> at{milliseconds(wall_ms)};
  const auto midnight = floor<days>(at);
  const year_month_day date(midnight);
  const hh_mm_ss time(at - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

// JSON's escapes, and for DEL and the C1 controls (which drive terminals) as well.
void append_quoted(std::string& out, std::string_view text) {
  std::string quoted;
  append_json_string(quoted, shortened(text));
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    const auto c = static_cast<unsigned char>(quoted[i]);
    const auto next = static_cast<unsigned char>(i + 1 < quoted.size() ? quoted[i + 1] : 0);
    if (c == 0x7F) {
      out += "\\u007f";
    } else if (c == 0xC2 && next >= 0x80 && next < 0xA0) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += quoted[i];
    }
  }
}

// Bare where every character is a visible one that could not be taken for a line's own syntax.
void append_text(std::string& out, std::string_view text, std::string_view syntax) {
  const bool bare = !text.empty() && text.size() <= kMaxTextBytes && std::ranges::all_of(text, [&](char c) {
    return c >= ' ' && c < 0x7F && syntax.find(c) == std::string_view::npos;
  });
  if (bare) {
    out += text;
  } else {
    append_quoted(out, text);
  }
}

std::string text_line(std::string_view time, std::string_view level, std::string_view message, LogFields fields) {
  std::string line = fmt::format("{} {} ", time, level);
  append_text(line, message, "");
  for (const auto& [name, value] : fields) {
    line += ' ';
    line += name;
    line += '=';
    append_text(line, value, " =\"\\");
  }
  line += '\n';
  return line;
}

std::string json_line(std::string_view time, std::string_view level, std::string_view message, LogFields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":)", time, level);
  append_quoted(line, message);
  for (const auto& [name, value] : fields) {
    line += ',';
    append_quoted(line, name);
    line += ':';
    append_quoted(line, value);
  }
  line += "}\n";
  return line;
}

}  // namespace

Log::Log(const Options& options, std::int64_t (*wall_ms)()) : options_(options), wall_ms_(wall_ms) {}

void Log::write(LogLevel level, std::string_view message, LogFields fields) const {
  if (!enabled(level)) return;
  const std::string time = timestamp(wall_ms_());
  const std::string_view name = kLevelNames[static_cast<std::size_t>(level)];
  const std::string line = options_.format == LogFormat::kJson ? json_line(time, name, message, fields)
                                                               : text_line(time, name, message, fields);
  // One write; what a full pipe leaves over follows. A log that cannot be written stops nothing.
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(options_.descriptor, rest.data(), rest.size());
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    if (written == 0 || (written < 0 && errno != EINTR)) return;
  }
}

}  // namespace sluice
