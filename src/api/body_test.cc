#include "api/body.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::api {
namespace {

net::RequestHead head_of(std::optional<std::uint64_t> length, const std::string& json_length) {
  net::RequestHead head;
  head.content_length = length;
  if (!json_length.empty()) head.headers.add("inference-header-content-length", json_length);
  return head;
}

std::string body_text(std::size_t json, std::size_t binary) {
  std::string text;
  for (std::size_t i = 0; i < json + binary; ++i) text += static_cast<char>('a' + i % 23);
  return text;
}

// In pieces of `piece` bytes, with and without a content-length: the same two parts.
void expect_parts(std::size_t json, std::size_t binary, std::size_t piece, bool length_known) {
  Arena arena({.name = "test"});
  {
    const std::string text = body_text(json, binary);
    BodyCollector body(arena, 1 << 20);
    const auto length = length_known ? std::optional<std::uint64_t>(text.size()) : std::nullopt;
    ASSERT_TRUE(body.begin(head_of(length, std::to_string(json))));
    for (std::size_t at = 0; at < text.size(); at += piece) {
      ASSERT_TRUE(body.append(as_bytes(std::string_view(text).substr(at, piece))));
    }
    const auto parts = body.finish();
    ASSERT_TRUE(parts) << parts.error().message;
    EXPECT_EQ(parts->json, text.substr(0, json));
    EXPECT_EQ(as_text(parts->binary.data), text.substr(json));
    for (std::size_t i = 0; i < parts->readable_past_json; ++i) ASSERT_EQ(parts->json.data()[json + i], '\0');
  }
  EXPECT_EQ(arena.usage().in_use_bytes, 0U);
}

TEST(BodyCollector, TheSamePartsWhateverThePieces) {
  for (const bool length_known : {true, false}) {
    for (const std::size_t piece : {1, 7, 1000, 100'000}) {
      expect_parts(0, 0, piece, length_known);
      expect_parts(10, 0, piece, length_known);
      expect_parts(0, 10, piece, length_known);
      expect_parts(300, 50'000, piece, length_known);
      expect_parts(40'000, 17, piece, length_known);
    }
  }
}

TEST(BodyCollector, ABodyOfUnknownLengthIsChargedToTheArena) {
  Arena arena({.name = "test", .max_bytes = 256 * 1024});
  BodyCollector body(arena, 1 << 20);
  ASSERT_TRUE(body.begin(head_of(std::nullopt, "")));
  const std::string piece(64 * 1024, 'x');
  ASSERT_TRUE(body.append(as_bytes(piece)));
  EXPECT_GE(arena.usage().in_use_bytes, piece.size());
  Status refused;
  for (int i = 0; i < 8 && refused; ++i) refused = body.append(as_bytes(piece));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
}

TEST(BodyCollector, RefusesMoreThanItsLimitAndAPartLongerThanTheWhole) {
  Arena arena({.name = "test"});
  BodyCollector large(arena, 1000);
  ASSERT_TRUE(large.begin(head_of(std::nullopt, "")));
  ASSERT_TRUE(large.append(as_bytes(std::string(1000, 'x'))));
  EXPECT_NE(large.append(as_bytes("y")).error().message.find("1000"), std::string::npos);
  EXPECT_EQ(BodyCollector(arena, 1000).begin(head_of(1001, "")).error().code, Code::kResourceExhausted);

  BodyCollector cut(arena, 1000);
  ASSERT_TRUE(cut.begin(head_of(std::nullopt, "11")));
  ASSERT_TRUE(cut.append(as_bytes("0123456789")));
  EXPECT_EQ(cut.finish().error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::api
