#include "transport/stream/frame.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace tutti {
namespace {

FrameHeader sample() {
  FrameHeader header;
  header.type = FrameType::data;
  header.code = Code::mismatch;
  header.acknowledge = true;
  header.payload = 0x01020304;
  header.id = 0x05060708;
  header.offset = 0x1112131415161718;
  header.message.tag = {0x21222324, 0x25262728, 0x3132333435363738};
  header.message.call = {CollectiveKind::scatter, DataType::float64, ReduceOp::Kind::user, 9, -2, true,
                         Composite::split,        0x4142434445464748};
  header.message.bytes = 0x5152535455565758;
  return header;
}

TEST(Frame, SurvivesTheWire) {
  EncodedFrameHeader wire;
  encode(sample(), wire);
  FrameHeader back;
  ASSERT_TRUE(decode(wire, back));
  EXPECT_EQ(back.type, FrameType::data);
  EXPECT_EQ(back.code, Code::mismatch);
  EXPECT_TRUE(back.acknowledge);
  EXPECT_EQ(back.payload, 0x01020304u);
  EXPECT_EQ(back.id, 0x05060708u);
  EXPECT_EQ(back.offset, 0x1112131415161718u);
  EXPECT_EQ(back.message.tag, sample().message.tag);
  EXPECT_EQ(back.message.call, sample().message.call);
  EXPECT_EQ(back.message.bytes, 0x5152535455565758u);
}

TEST(Frame, IsLittleEndian) {
  EncodedFrameHeader wire;
  encode(sample(), wire);
  EXPECT_EQ(std::memcmp(wire.data(), "TUT1\x04\x04\0\x01\x04\x03\x02\x01", 12), 0);
  EXPECT_EQ(std::memcmp(wire.data() + 40, "\x0b\x09\x09\x09\xfe\xff\xff\x02\x48\x47", 10), 0);
  EXPECT_EQ(wire[56], std::byte{0x58});
  EXPECT_EQ(wire[63], std::byte{0x51});
}

TEST(Frame, CanBeMarkedForAcknowledgementOnceEncoded) {
  FrameHeader header = sample();
  header.acknowledge = false;
  EncodedFrameHeader wire;
  encode(header, wire);
  EXPECT_FALSE(has_acknowledge(wire));
  set_acknowledge(wire);
  EXPECT_TRUE(has_acknowledge(wire));
  ASSERT_TRUE(decode(wire, header));
  EXPECT_TRUE(header.acknowledge);
}

TEST(Frame, EveryEnumerationIsChecked) {
  EncodedFrameHeader good;
  encode(sample(), good);
  FrameHeader header;
  for (const std::size_t at : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 40u, 41u, 42u, 47u}) {
    EncodedFrameHeader bad = good;
    bad[at] = std::byte{0xff};
    EXPECT_FALSE(decode(bad, header)) << "byte " << at;
  }
  EncodedFrameHeader bad = good;
  bad[4] = std::byte{0};
  EXPECT_FALSE(decode(bad, header));
  bad[4] = std::byte{12};
  EXPECT_FALSE(decode(bad, header));
}

TEST(Frame, NoiseIsNoFrame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    EncodedFrameHeader noise;
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    FrameHeader header;
    EXPECT_FALSE(decode(noise, header));
  }
}

}  // namespace
}  // namespace tutti
