// High dynamic range histogram (Gil Tene's HdrHistogram): counts in buckets whose relative width is
// bounded by the number of significant digits, from `lowest` to `highest`; larger values are counted in
// the last bucket and in `saturated`.
//   sub-buckets 2^ceil(log2(2*10^digits)); each further bucket doubles the range with half of them.
//   (1, 3.6e9, 3 digits): 2048 sub-buckets, 22 buckets, 23552 counts.
// Not for concurrent use: one writer; AtomicHdrHistogram is its shared form.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

struct HdrConfig {
  std::int64_t lowest = 1;
  std::int64_t highest = 3'600'000'000;
  int significant_digits = 3;  // 1 to 5
};

// The index arithmetic, apart from the storage.
class HdrLayout {
 public:
  explicit HdrLayout(const HdrConfig& config);
  std::size_t counts() const { return counts_; }
  std::size_t index_of(std::int64_t value) const;        // clamped to the last count
  std::int64_t lowest_at(std::size_t index) const;       // smallest value of the bucket
  std::int64_t highest_at(std::size_t index) const;      // largest value of the bucket
  const HdrConfig& config() const { return config_; }
  int sub_bucket_count() const { return sub_bucket_count_; }
  int bucket_count() const { return bucket_count_; }

 private:
  HdrConfig config_;
  int unit_magnitude_ = 0;
  int sub_bucket_count_ = 0;
  int sub_bucket_half_magnitude_ = 0;
  int bucket_count_ = 0;
  std::size_t counts_ = 0;
};

class HdrHistogram {
 public:
  explicit HdrHistogram(const HdrConfig& config = {});
  void record(std::int64_t value, std::int64_t count = 1);
  void add(const HdrHistogram& other);  // same layout (checked)
  void reset();

  std::int64_t count() const { return total_; }
  std::int64_t sum() const { return sum_; }
  std::int64_t max() const { return max_; }
  std::int64_t min() const;  // 0 when empty
  double mean() const;
  std::int64_t saturated() const { return saturated_; }
  // The smallest recorded-equivalent value with at least `percent` % of the counts at or below it.
  std::int64_t percentile(double percent) const;
  std::int64_t count_at_or_below(std::int64_t value) const;
  const HdrLayout& layout() const { return layout_; }
  std::int64_t count_at_index(std::size_t index) const { return counts_[index]; }

 private:
  friend class AtomicHdrHistogram;
  HdrLayout layout_;
  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0, sum_ = 0, max_ = 0, min_ = INT64_MAX, saturated_ = 0;
};

// Any number of writers and readers; a snapshot may miss what is recorded while it is taken.
class AtomicHdrHistogram {
 public:
  explicit AtomicHdrHistogram(const HdrConfig& config = {});
  void record(std::int64_t value);
  HdrHistogram snapshot() const;

 private:
  HdrLayout layout_;
  std::unique_ptr<std::atomic<std::int64_t>[]> counts_;
  std::atomic<std::int64_t> sum_{0}, max_{0}, min_{INT64_MAX}, saturated_{0};
};

}  // namespace sluice
