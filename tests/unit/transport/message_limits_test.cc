// Tests the text form of `MessageLimits`, which is part of a transport's address.
#include "transport/message_limits.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(MessageLimits, AreReadAsTheyWereWritten) {
  for (const MessageLimits limits : {MessageLimits{}, MessageLimits{0, 1024, 1024}}) {
    const auto read = parse_limits(format(limits));
    ASSERT_TRUE(read) << format(limits);
    EXPECT_EQ(*read, limits);
  }
}

TEST(MessageLimits, OfAnyOtherFormAreRefused) {
  for (const char* text :
       {"", "1", "1,2000", "1,2000,", "1,2000,3000,", "1,2000,3000,4000", ",2000,3000", "1,,3000",
        "-1,2000,3000", " 1,2000,3000", "1,2000,3000 ", "1;2000;3000", "4294967296,2000,3000", "1,2000,x"}) {
    EXPECT_FALSE(parse_limits(text)) << text;
  }
}

TEST(MessageLimits, WithWhichNoRankCouldWorkAreRefused) {
  for (const char* text : {"0,0,0", "1,1023,1024", "1,1024,1023", "1,1024,0"})
    EXPECT_FALSE(parse_limits(text)) << text;
}

TEST(MessageLimits, TheSmallerOneOfEachCounts) {
  const MessageLimits expected{1, 2000, 3000};
  EXPECT_EQ(minimum({1, 9000, 3000}, {5, 2000, 9000}), expected);
  EXPECT_EQ(minimum({5, 2000, 9000}, {1, 9000, 3000}), expected);
}

}  // namespace
}  // namespace tutti
