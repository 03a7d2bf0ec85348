#include "wire/grpc/framing.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice::grpc_wire {
namespace {

using namespace std::chrono_literals;

TEST(MessagePrefix, IsAFlagAndABigEndianLength) {
  EXPECT_EQ(message_prefix(0x01020304), (std::array<char, 5>{0, 1, 2, 3, 4}));
  EXPECT_EQ(message_prefix(0xFFFFFFFF), (std::array<char, 5>{0, '\xFF', '\xFF', '\xFF', '\xFF'}));
}

TEST(ParseTimeout, ReadsEveryUnit) {
  EXPECT_EQ(parse_timeout("2H"), Duration(2h));
  EXPECT_EQ(parse_timeout("3M"), Duration(3min));
  EXPECT_EQ(parse_timeout("4S"), Duration(4s));
  EXPECT_EQ(parse_timeout("100m"), Duration(100ms));
  EXPECT_EQ(parse_timeout("5u"), Duration(5us));
  EXPECT_EQ(parse_timeout("6n"), Duration(6ns));
  EXPECT_EQ(parse_timeout("00000001n"), Duration(1ns));
}

TEST(ParseTimeout, SaturatesWhatIsBeyondTheRange) {
  EXPECT_EQ(parse_timeout("99999999H"), Duration::max());
  EXPECT_EQ(parse_timeout("2562047H"), Duration(std::chrono::hours(2562047)));  // the last that fits
  EXPECT_EQ(parse_timeout("2562048H"), Duration::max());
}

TEST(ParseTimeout, RefusesWhatIsMalformed) {
  for (const char* text : {"", "1", "S", "123456789n", "1s", "1h", "-1S", "+1S", "1 S", "0x1S", "1.5S", "1SS", " 1S"}) {
    EXPECT_EQ(parse_timeout(text), std::nullopt) << text;
  }
}

TEST(FormatTimeout, PrefersAnExactUnit) {
  EXPECT_EQ(format_timeout(100ms), "100m");
  EXPECT_EQ(format_timeout(1500ms), "1500m");
  EXPECT_EQ(format_timeout(2s), "2S");
  EXPECT_EQ(format_timeout(24h), "24H");
  EXPECT_EQ(format_timeout(1ns), "1n");
}

TEST(FormatTimeout, RoundsUpWhatHasNoExactForm) {
  EXPECT_EQ(format_timeout(100s + 1ns), "100001m");
  EXPECT_EQ(format_timeout(Duration::max()), "2562048H");
}

TEST(FormatTimeout, NeverWritesZero) {
  EXPECT_EQ(format_timeout(0ns), "1n");
  EXPECT_EQ(format_timeout(-5s), "1n");
}

TEST(FormatTimeout, ReadsBackToNoLessAndAlmostNoMore) {
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    const Duration timeout(1 + static_cast<std::int64_t>(random.next() >> (1 + random.below(62))));
    const std::string text = format_timeout(timeout);
    ASSERT_LE(text.size(), 9U);
    const auto back = parse_timeout(text);
    ASSERT_TRUE(back) << text;
    ASSERT_GE(*back, timeout) << text;
    if (*back == Duration::max()) continue;
    // Eight digits of one unit are at least five of the next: at most one in 10^4 is added.
    ASSERT_LE(to_seconds(*back - timeout), to_seconds(timeout) * 1e-4) << text;
  }
}

TEST(GrpcMessage, EncodesWhatIsNotPlainAscii) {
  EXPECT_EQ(encode_message("plain text, with ~!"), "plain text, with ~!");
  EXPECT_EQ(encode_message("100%\n\xC3\xA9\x7F"), "100%25%0A%C3%A9%7F");
}

TEST(GrpcMessage, DecodesLeniently) {
  EXPECT_EQ(decode_message("100%25%0a"), "100%\n");
  EXPECT_EQ(decode_message("%"), "%");
  EXPECT_EQ(decode_message("%4"), "%4");
  EXPECT_EQ(decode_message("%4g%41"), "%4gA");
}

TEST(GrpcMessage, RoundTripsAnyBytes) {
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    std::string text(random.below(40), '\0');
    for (char& c : text) c = static_cast<char>(random.next());
    const std::string encoded = encode_message(text);
    for (const char c : encoded) ASSERT_TRUE(c >= 0x20 && c <= 0x7E);
    ASSERT_EQ(decode_message(encoded), text);
  }
}

}  // namespace
}  // namespace sluice::grpc_wire
