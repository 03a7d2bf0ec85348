// The Prometheus text exposition format 0.0.4. Samples of one family stand together, after one HELP and
// one TYPE line; label values are escaped. A writer, not a registry: whoever owns the numbers writes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "stats/hdr_histogram.h"

namespace sluice {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

enum class MetricType { kCounter, kGauge, kHistogram };

inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

class PrometheusWriter {
 public:
  explicit PrometheusWriter(std::string& out) : out_(out) {}
  // Begins a family; samples that follow belong to it.
  void family(std::string_view name, MetricType type, std::string_view help);
  void sample(Labels labels, double value);
  void sample(Labels labels, std::uint64_t value);
  // Buckets at `bounds` (in the unit of the exposition), +Inf, sum and count; values of the histogram are
  // divided by `per_unit` (1e9 for ns shown as seconds).
  void histogram(Labels labels, const HdrHistogram& values, double per_unit, std::span<const double> bounds);

 private:
  std::string& out_;
  std::string name_;
};

}  // namespace sluice
