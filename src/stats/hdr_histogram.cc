#include "stats/hdr_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace sluice {
namespace {

int magnitude_of(std::int64_t value) { return std::bit_width(static_cast<std::uint64_t>(value)) - 1; }

void raise_to(std::atomic<std::int64_t>& at, std::int64_t value) {
  std::int64_t now = at.load(std::memory_order_relaxed);
  while (value > now && !at.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
  }
}

void lower_to(std::atomic<std::int64_t>& at, std::int64_t value) {
  std::int64_t now = at.load(std::memory_order_relaxed);
  while (value < now && !at.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

HdrLayout::HdrLayout(const HdrConfig& config) : config_(config) {
  SLUICE_CHECK(config.significant_digits >= 1 && config.significant_digits <= 5, "1 to 5 significant digits");
  SLUICE_CHECK(config.lowest >= 1 && config.highest / 2 >= config.lowest, "a range of at least lowest to 2 * lowest");
  // Up to 2 * 10^digits single units are told apart; above, half a row of sub-buckets doubles the range.
  std::int64_t told_apart = 2;
  for (int i = 0; i < config.significant_digits; ++i) told_apart *= 10;
  const int sub_bucket_magnitude = magnitude_of(told_apart - 1) + 1;
  unit_magnitude_ = magnitude_of(config.lowest);
  sub_bucket_half_magnitude_ = sub_bucket_magnitude - 1;
  sub_bucket_count_ = 1 << sub_bucket_magnitude;
  bucket_count_ = 1;
  std::int64_t reach = std::int64_t{sub_bucket_count_} << unit_magnitude_;
  while (reach <= config.highest) {
    ++bucket_count_;
    if (reach > INT64_MAX / 2) break;
    reach <<= 1;
  }
  counts_ = static_cast<std::size_t>(bucket_count_ + 1) << sub_bucket_half_magnitude_;
}

std::size_t HdrLayout::index_of(std::int64_t value) const {
  if (value <= 0) return 0;
  if (value > config_.highest) return counts_ - 1;
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t first_row = (static_cast<std::uint64_t>(sub_bucket_count_) - 1) << unit_magnitude_;
  const int bucket = std::bit_width(bits | first_row) - unit_magnitude_ - (sub_bucket_half_magnitude_ + 1);
  const std::uint64_t sub_bucket = bits >> (bucket + unit_magnitude_);
  return (static_cast<std::size_t>(bucket) << sub_bucket_half_magnitude_) + sub_bucket;
}

std::int64_t HdrLayout::lowest_at(std::size_t index) const {
  const std::size_t half = std::size_t{1} << sub_bucket_half_magnitude_;
  const std::size_t bucket = index < 2 * half ? 0 : (index >> sub_bucket_half_magnitude_) - 1;
  const std::size_t sub_bucket = index - (bucket << sub_bucket_half_magnitude_);
  return static_cast<std::int64_t>(sub_bucket << (bucket + static_cast<std::size_t>(unit_magnitude_)));
}

std::int64_t HdrLayout::highest_at(std::size_t index) const {
  return index + 1 < counts_ ? lowest_at(index + 1) - 1 : std::max(config_.highest, lowest_at(index));
}

HdrHistogram::HdrHistogram(const HdrConfig& config) : layout_(config), counts_(layout_.counts()) {}

void HdrHistogram::record(std::int64_t value, std::int64_t count) {
  value = std::max<std::int64_t>(value, 0);
  counts_[layout_.index_of(value)] += count;
  total_ += count;
  sum_ += value * count;
  max_ = std::max(max_, value);
  min_ = std::min(min_, value);
  if (value > layout_.config().highest) saturated_ += count;
}

void HdrHistogram::add(const HdrHistogram& other) {
  SLUICE_CHECK(counts_.size() == other.counts_.size() && layout_.config().lowest == other.layout_.config().lowest &&
                   layout_.config().highest == other.layout_.config().highest &&
                   layout_.sub_bucket_count() == other.layout_.sub_bucket_count(),
               "histograms that are added have one layout");
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
  saturated_ += other.saturated_;
}

void HdrHistogram::reset() {
  std::fill(counts_.begin(), counts_.end(), 0);
  total_ = sum_ = max_ = saturated_ = 0;
  min_ = INT64_MAX;
}

std::int64_t HdrHistogram::min() const { return total_ == 0 ? 0 : min_; }

double HdrHistogram::mean() const {
  return total_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(total_);
}

std::int64_t HdrHistogram::percentile(double percent) const {
  if (total_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(total_);
  const auto wanted = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share)));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(layout_.highest_at(i), max_);
  }
  return max_;  // in the last bucket, where values beyond the range are as well
}

std::int64_t HdrHistogram::count_at_or_below(std::int64_t value) const {
  if (value < 0) return 0;
  const std::size_t last = layout_.index_of(value);
  std::int64_t count = 0;
  for (std::size_t i = 0; i <= last; ++i) count += counts_[i];
  return count;
}

AtomicHdrHistogram::AtomicHdrHistogram(const HdrConfig& config)
    : layout_(config), counts_(std::make_unique<std::atomic<std::int64_t>[]>(layout_.counts())) {}

void AtomicHdrHistogram::record(std::int64_t value) {
  value = std::max<std::int64_t>(value, 0);
  counts_[layout_.index_of(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  raise_to(max_, value);
  lower_to(min_, value);
  if (value > layout_.config().highest) saturated_.fetch_add(1, std::memory_order_relaxed);
}

HdrHistogram AtomicHdrHistogram::snapshot() const {
  HdrHistogram out(layout_.config());
  for (std::size_t i = 0; i < layout_.counts(); ++i) {
    out.counts_[i] = counts_[i].load(std::memory_order_relaxed);
    out.total_ += out.counts_[i];
  }
  out.sum_ = sum_.load(std::memory_order_relaxed);
  out.max_ = max_.load(std::memory_order_relaxed);
  out.min_ = min_.load(std::memory_order_relaxed);
  out.saturated_ = saturated_.load(std::memory_order_relaxed);
  return out;
}

}  // namespace sluice
