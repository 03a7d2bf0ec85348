#include "tensor/buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tensor/size_class.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

BufferRef must_allocate(Arena& arena, std::size_t size) {
  auto buffer = arena.allocate(size);
  EXPECT_TRUE(buffer) << buffer.error().message;
  return buffer ? std::move(*buffer) : BufferRef();
}

TEST(SizeClass, HoldsEverySizeWithAtMostAFifthLost) {
  static_assert(class_of_size(0) == 0 && class_of_size(64) == 0 && class_of_size(65) == 1);
  static_assert(size_of_class(class_of_size(602'112)) == 640 << 10);
  for (std::size_t index = 0; index < kSizeClassCount; ++index) {
    const std::size_t size = size_of_class(index);
    EXPECT_EQ(size % kTensorAlignment, 0U);
    EXPECT_EQ(class_of_size(size), index);
    if (index + 1 < kSizeClassCount) {
      EXPECT_EQ(class_of_size(size + 1), index + 1);
      EXPECT_LE(size_of_class(index + 1) - size, std::max(kTensorAlignment, size / 4));
    }
  }
}

TEST(Arena, GivesAlignedWritableMemoryOfEverySize) {
  Arena arena({});
  std::vector<BufferRef> held;
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{4096},
                                 std::size_t{100'000}, std::size_t{602'112}, 5 * kMiB}) {
    BufferRef buffer = must_allocate(arena, size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kTensorAlignment, 0U);
    std::memset(buffer.data(), static_cast<int>(size), size);
    held.push_back(std::move(buffer));
  }
  for (const BufferRef& buffer : held) {
    EXPECT_EQ(buffer.data()[buffer.size() - 1], static_cast<std::byte>(buffer.size()));
  }
  EXPECT_EQ(arena.usage().blocks, held.size());
}

TEST(Arena, GivesAReferenceOfSizeZero) {
  Arena arena({});
  BufferRef buffer = must_allocate(arena, 0);
  EXPECT_TRUE(buffer);
  EXPECT_NE(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(buffer.kind(), MemoryKind::kHost);
}

TEST(Arena, ReusesABlockOfTheSameClass) {
  Arena arena({});
  for (const std::size_t size : {std::size_t{1000}, 3 * kMiB}) {
    BufferRef first = must_allocate(arena, size);
    const std::byte* at = first.data();
    first = BufferRef();
    EXPECT_EQ(must_allocate(arena, size - 1).data(), at);
  }
}

TEST(Arena, CountsUntilTheLastReferenceIsGone) {
  Arena arena({});
  BufferRef first = must_allocate(arena, 100);
  EXPECT_EQ(arena.usage().in_use_bytes, 128U);
  BufferRef second = first;
  first = BufferRef();
  EXPECT_EQ(arena.usage().blocks, 1U);
  BufferRef third = std::move(second);
  EXPECT_FALSE(second);  // NOLINT: moved from, and empty by contract
  third = BufferRef();
  const Arena::Usage usage = arena.usage();
  EXPECT_EQ(usage.blocks, 0U);
  EXPECT_EQ(usage.in_use_bytes, 0U);
  EXPECT_EQ(usage.idle_bytes, 128U);
}

TEST(Arena, RefusesBeyondItsLimitAndNamesIt) {
  Arena arena({.name = "requests", .max_bytes = 1024});
  BufferRef half = must_allocate(arena, 512);
  const auto refused = arena.allocate(513);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_EQ(refused.error().retry_after_s, 1U);  // there is room for it once the other has gone
  EXPECT_EQ(arena.allocate(1025).error().retry_after_s, 0U);
  EXPECT_THAT(refused.error().message, HasSubstr("'requests'"));
  EXPECT_THAT(refused.error().message, HasSubstr("513 B"));
  EXPECT_THAT(refused.error().message, HasSubstr("512 B of at most 1024 B"));
  EXPECT_FALSE(arena.allocate(SIZE_MAX));
  EXPECT_EQ(arena.usage().in_use_bytes, 512U);
  half = BufferRef();
  EXPECT_TRUE(arena.allocate(1024));
}

TEST(Arena, SaysWhenTheSystemHasNoSuchMemory) {
  Arena arena({.max_bytes = SIZE_MAX});
  const auto refused = arena.allocate(kMaxClassBytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(arena.usage().in_use_bytes, 0U);
  EXPECT_TRUE(arena.allocate(64));
}

TEST(Arena, GivesIdleMemoryAboveItsLimitBack) {
  Arena arena({.max_idle_bytes = 8 * kMiB});
  std::vector<BufferRef> held;
  for (int i = 0; i < 16; ++i) held.push_back(must_allocate(arena, 2 * kMiB));
  held.clear();
  EXPECT_LE(arena.usage().idle_bytes, 8 * kMiB);
  EXPECT_GT(arena.usage().idle_bytes, 4 * kMiB);
  // Blocks that share slabs go back with their slabs, once these are empty.
  for (int i = 0; i < 1000; ++i) held.push_back(must_allocate(arena, 64 << 10));
  held.clear();
  EXPECT_LE(arena.usage().idle_bytes, 8 * kMiB);
  BufferRef again = must_allocate(arena, 64 << 10);
  std::memset(again.data(), 1, again.size());
}

TEST(Arena, KeepsNothingIdleWhenTheLimitIsZero) {
  Arena arena({.max_idle_bytes = 0});
  for (const std::size_t size : {std::size_t{10}, std::size_t{70'000}, 2 * kMiB}) {
    must_allocate(arena, size) = BufferRef();
    EXPECT_EQ(arena.usage().idle_bytes, 0U) << size;
  }
}

TEST(Arena, TakesBlocksBackFromOtherThreads) {
  Arena arena({});
  std::vector<BufferRef> held;
  for (int i = 0; i < 500; ++i) held.push_back(must_allocate(arena, static_cast<std::size_t>(i) * 40));
  std::thread other([taken = std::move(held)]() mutable { taken.clear(); });
  other.join();
  EXPECT_EQ(arena.usage().blocks, 0U);
  EXPECT_EQ(arena.usage().in_use_bytes, 0U);
}

// Threads allocate, stamp, hand one another blocks by a shared table and check the stamps: a block that
// two hold at once shows a wrong stamp. Idle memory is tight, so that slabs come and go.
TEST(Arena, NeverHandsABlockToTwoUnderConcurrency) {
  constexpr int kThreads = 4, kRounds = 4000;
  Arena arena({.max_bytes = 256 * kMiB, .max_idle_bytes = kMiB});
  std::array<BufferRef, 64> table;
  std::array<std::mutex, 64> locks;
  std::atomic<int> wrong{0};
  const auto work = [&](std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < kRounds; ++i) {
      const std::size_t size = 2 * sizeof(std::uint64_t) + random.below(random.chance(0.02) ? kMiB : 20'000);
      auto buffer = arena.allocate(size);
      if (!buffer) continue;
      const std::uint64_t stamp = random.next();
      std::memcpy(buffer->data(), &stamp, sizeof stamp);
      std::memcpy(buffer->data() + size - sizeof stamp, &stamp, sizeof stamp);
      const std::size_t slot = random.below(table.size());
      BufferRef taken = std::move(*buffer);
      {
        const std::lock_guard lock(locks[slot]);
        std::swap(taken, table[slot]);
      }
      if (taken && std::memcmp(taken.data(), taken.data() + taken.size() - 8, 8) != 0) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(arena.usage().blocks, 0U);
  for (BufferRef& slot : table) slot = BufferRef();
  EXPECT_EQ(arena.usage().blocks, 0U);
  EXPECT_EQ(arena.usage().in_use_bytes, 0U);
  EXPECT_LE(arena.usage().idle_bytes, kMiB);
}

TEST(ArenaDeathTest, EndsWithAReasonWhenBlocksAreStillHeld) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        BufferRef outlives;
        Arena arena({.name = "early"});
        outlives = must_allocate(arena, 100);
      },
      "arena 'early' ends while 1 blocks");
}

TEST(ForeignBuffer, IsReleasedOnceByTheLastReference) {
  std::string memory = "foreign";
  int released = 0;
  BufferRef first = wrap_foreign(reinterpret_cast<std::byte*>(memory.data()), memory.size(),
                                 [](void* count) { ++*static_cast<int*>(count); }, &released);
  BufferRef second = first;
  EXPECT_EQ(as_text(second.bytes()), "foreign");
  EXPECT_EQ(second.kind(), MemoryKind::kHost);
  first = BufferRef();
  EXPECT_EQ(released, 0);
  second = BufferRef();
  EXPECT_EQ(released, 1);
}

TEST(ForeignBuffer, MayHaveNothingToRelease) {
  std::byte memory[8] = {};
  BufferRef buffer = wrap_foreign(memory, sizeof memory, nullptr, nullptr);
  EXPECT_EQ(buffer.size(), 8U);
}

}  // namespace
}  // namespace sluice
