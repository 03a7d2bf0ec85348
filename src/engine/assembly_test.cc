#include "engine/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/random.h"

namespace sluice::engine {
namespace {

using ::testing::HasSubstr;

Tensor make_tensor(Arena& arena, DataType type, Shape shape, std::string_view bytes) {
  BufferRef buffer = arena.allocate(bytes.size()).value();
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return {type, std::move(shape), buffer.bytes(), buffer};
}

BatchItem make_item(std::vector<Tensor> inputs, std::int64_t rows) { return {std::move(inputs), rows}; }

std::string bytes_element(std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out.append(text);
}

class Assembly : public ::testing::Test {
 protected:
  Arena arena_{Arena::Options{}};
};

TEST_F(Assembly, OneItemPassesThroughWithoutACopy) {
  std::vector<BatchItem> items;
  items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {2, 2}, "abcd")}, 2));
  const std::byte* address = items[0].inputs[0].data.data();
  const std::size_t blocks = arena_.usage().blocks;
  const auto inputs = assemble_inputs(std::move(items), arena_);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).data.data(), address);
  EXPECT_EQ(inputs->at(0).shape, (Shape{2, 2}));
  EXPECT_EQ(arena_.usage().blocks, blocks);
}

TEST_F(Assembly, RowsOfSeveralItemsStandInOrder) {
  std::vector<BatchItem> items;
  items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {1, 2}, "ab"),
                             make_tensor(arena_, DataType::kBytes, {1, 1}, bytes_element("x"))},
                            1));
  items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {2, 2}, "cdef"),
                             make_tensor(arena_, DataType::kBytes, {2, 1}, bytes_element("") + bytes_element("yz"))},
                            2));
  const auto inputs = assemble_inputs(std::move(items), arena_);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(as_text(inputs->at(0).data), "abcdef");
  EXPECT_EQ(inputs->at(0).shape, (Shape{3, 2}));
  EXPECT_EQ(as_text(inputs->at(1).data), bytes_element("x") + bytes_element("") + bytes_element("yz"));
  EXPECT_TRUE(check_tensor_data(inputs->at(1)));
}

TEST_F(Assembly, AnInputThatAllLeaveOutStaysAbsent) {
  std::vector<BatchItem> items;
  for (int i = 0; i < 2; ++i) {
    items.push_back(make_item({Tensor{}, make_tensor(arena_, DataType::kBool, {1}, "1")}, 1));
  }
  const auto inputs = assemble_inputs(std::move(items), arena_);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).datatype, DataType::kInvalid);
  EXPECT_EQ(inputs->at(1).shape, (Shape{2}));
}

TEST_F(Assembly, RowsWithoutElementsAreJoined) {
  std::vector<BatchItem> items;
  for (int i = 0; i < 2; ++i) items.push_back(make_item({Tensor{DataType::kFp32, {1, 0}, {}, {}}}, 1));
  const auto inputs = assemble_inputs(std::move(items), arena_);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).shape, (Shape{2, 0}));
  EXPECT_TRUE(inputs->at(0).data.empty());
}

TEST_F(Assembly, ItemsThatDoNotFitTogetherAreRefused) {
  const auto joined_with = [&](Tensor other) {
    std::vector<BatchItem> items;
    items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {1, 2}, "ab")}, 1));
    items.push_back(make_item({std::move(other)}, 1));
    return assemble_inputs(std::move(items), arena_);
  };
  const auto shape = joined_with(make_tensor(arena_, DataType::kUint8, {1, 3}, "abc"));
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, Code::kInternal);
  EXPECT_THAT(shape.error().message, HasSubstr("UINT8 [1,3]"));
  EXPECT_FALSE(joined_with(make_tensor(arena_, DataType::kInt8, {1, 2}, "ab")));
  EXPECT_FALSE(joined_with(make_tensor(arena_, DataType::kUint8, {1, 2, 1}, "ab")));
  EXPECT_FALSE(joined_with(Tensor{}));
  EXPECT_FALSE(assemble_inputs({}, arena_));
}

TEST_F(Assembly, AFullArenaRefusesTheGather) {
  Arena small(Arena::Options{.name = "small", .max_bytes = 4096});
  std::vector<BatchItem> items;
  const std::string bytes(4096, 'a');
  for (int i = 0; i < 2; ++i) {
    items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {1, 4096}, bytes)}, 1));
  }
  const auto inputs = assemble_inputs(std::move(items), small);
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().code, Code::kResourceExhausted);
}

// However rows are split over items, the gather gives the same tensor, and nothing is leaked.
TEST_F(Assembly, AnySplitOfTheRowsGivesTheWhole) {
  constexpr std::uint64_t kSeed = 20240917;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t rows = random.between(2, 64);
    const std::int64_t row_bytes = random.chance(0.1) ? 70'000 : random.between(1, 300);
    std::string whole(static_cast<std::size_t>(rows * row_bytes), '\0');
    for (char& c : whole) c = static_cast<char>(random.next());
    std::vector<BatchItem> items;
    for (std::int64_t at = 0; at < rows;) {
      const std::int64_t take = random.between(1, rows - at);
      const std::string_view part = std::string_view(whole).substr(at * row_bytes, take * row_bytes);
      items.push_back(make_item({make_tensor(arena_, DataType::kUint8, {take, row_bytes}, part)}, take));
      at += take;
    }
    const auto inputs = assemble_inputs(std::move(items), arena_);
    ASSERT_TRUE(inputs) << inputs.error().message;
    ASSERT_EQ(inputs->at(0).shape, (Shape{rows, row_bytes}));
    ASSERT_TRUE(as_text(inputs->at(0).data) == whole);
    ASSERT_EQ(arena_.usage().blocks, 1U);
  }
  EXPECT_EQ(arena_.usage().blocks, 0U);
}

}  // namespace
}  // namespace sluice::engine
