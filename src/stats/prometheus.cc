#include "stats/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (quotes && c == '"')) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// name<suffix>{labels,le="..."} value
struct Line {
  std::string_view name, suffix, le, value;
};

void append_line(std::string& out, const Line& line, Labels labels) {
  out += line.name;
  out += line.suffix;
  char before = '{';
  const auto label = [&](std::string_view name, std::string_view value) {
    out += before;
    before = ',';
    out += name;
    out += "=\"";
    append_escaped(out, value, true);
    out += '"';
  };
  for (const auto& [name, value] : labels) label(name, value);
  if (!line.le.empty()) label("le", line.le);
  if (before == ',') out += '}';
  out += ' ';
  out += line.value;
  out += '\n';
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kHistogram: return "histogram";
  }
  return "untyped";
}

}  // namespace

void PrometheusWriter::family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  out_ += fmt::format("# HELP {} ", name);
  append_escaped(out_, help, false);
  out_ += fmt::format("\n# TYPE {} {}\n", name, type_name(type));
}

void PrometheusWriter::sample(Labels labels, double value) {
  append_line(out_, {.name = name_, .value = number(value)}, labels);
}

void PrometheusWriter::sample(Labels labels, std::uint64_t value) {
  append_line(out_, {.name = name_, .value = fmt::format("{}", value)}, labels);
}

void PrometheusWriter::histogram(Labels labels, const HdrHistogram& values, double per_unit,
                                 std::span<const double> bounds) {
  // Bounds ascend, so that one pass over the counts serves them all.
  std::int64_t seen = 0;
  std::size_t next = 0;
  for (const double bound : bounds) {
    const double limit = std::min(std::floor(bound * per_unit), 9.2e18);
    const std::size_t last = values.layout().index_of(static_cast<std::int64_t>(limit));
    for (; next <= last; ++next) seen += values.count_at_index(next);
    append_line(out_, {name_, "_bucket", number(bound), fmt::format("{}", seen)}, labels);
  }
  const std::string count = fmt::format("{}", values.count());
  append_line(out_, {name_, "_bucket", "+Inf", count}, labels);
  append_line(out_, {name_, "_sum", "", number(static_cast<double>(values.sum()) / per_unit)}, labels);
  append_line(out_, {name_, "_count", "", count}, labels);
}

}  // namespace sluice
