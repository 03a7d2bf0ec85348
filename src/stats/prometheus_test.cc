#include "stats/prometheus.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace sluice {
namespace {

TEST(Prometheus, WritesAFamilyAndItsSamples) {
  std::string out;
  PrometheusWriter writer(out);
  writer.family("nv_inference_count", MetricType::kCounter, "Rows inferred");
  writer.sample({{"model", "ocr"}, {"version", "1"}}, std::uint64_t{18446744073709551615ULL});
  writer.family("nv_cpu_utilization", MetricType::kGauge, "Share of the CPU");
  writer.sample({}, 0.25);
  EXPECT_EQ(out,
            "# HELP nv_inference_count Rows inferred\n"
            "# TYPE nv_inference_count counter\n"
            "nv_inference_count{model=\"ocr\",version=\"1\"} 18446744073709551615\n"
            "# HELP nv_cpu_utilization Share of the CPU\n"
            "# TYPE nv_cpu_utilization gauge\n"
            "nv_cpu_utilization 0.25\n");
}

TEST(Prometheus, EscapesLabelValuesAndHelp) {
  std::string out;
  PrometheusWriter writer(out);
  writer.family("x", MetricType::kGauge, "a\\b\n\"c\"");
  writer.sample({{"model", "a\"b\\c\nd"}}, 1.0);
  EXPECT_EQ(out, "# HELP x a\\\\b\\n\"c\"\n# TYPE x gauge\nx{model=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(Prometheus, NamesNumbersThatAreNotFinite) {
  std::string out;
  PrometheusWriter writer(out);
  writer.family("x", MetricType::kGauge, "h");
  out.clear();
  writer.sample({}, std::numeric_limits<double>::quiet_NaN());
  writer.sample({}, std::numeric_limits<double>::infinity());
  writer.sample({}, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "x NaN\nx +Inf\nx -Inf\n");
}

TEST(Prometheus, CumulatesAHistogramOverItsBounds) {
  HdrHistogram values({.lowest = 1, .highest = 3'600'000'000'000, .significant_digits = 2});
  values.record(500'000);
  values.record(2'000'000, 2);
  values.record(900'000'000'000);
  std::string out;
  PrometheusWriter writer(out);
  writer.family("sluice_stage_seconds", MetricType::kHistogram, "h");
  out.clear();
  writer.histogram({{"stage", "queue"}}, values, 1e9, std::array{0.0001, 0.001, 0.01, 1e300});
  EXPECT_EQ(out,
            "sluice_stage_seconds_bucket{stage=\"queue\",le=\"0.0001\"} 0\n"
            "sluice_stage_seconds_bucket{stage=\"queue\",le=\"0.001\"} 1\n"
            "sluice_stage_seconds_bucket{stage=\"queue\",le=\"0.01\"} 3\n"
            "sluice_stage_seconds_bucket{stage=\"queue\",le=\"1e+300\"} 4\n"
            "sluice_stage_seconds_bucket{stage=\"queue\",le=\"+Inf\"} 4\n"
            "sluice_stage_seconds_sum{stage=\"queue\"} 900.0045\n"
            "sluice_stage_seconds_count{stage=\"queue\"} 4\n");
}

}  // namespace
}  // namespace sluice
