#include "core/security/byte_stream.h"

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/unit/core/guard_ends.h"

namespace tutti::security {
namespace {

std::span<const std::byte> bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ByteStream, MovesPartsThroughAPlainSocket) {
  // The stream copies short parts into one buffer and sends the buffer. It sends long parts
  // directly from their own memory.
  for (const std::size_t length : {std::size_t{3}, std::size_t{3000}}) {
    Connection connection;
    ByteStream stream;
    const std::string head(length, 'a'), tail(length, 'b');
    const std::array<std::span<const std::byte>, 2> parts = {bytes_of_text(head), bytes_of_text(tail)};
    int error = -1;
    ASSERT_EQ(stream.write(connection.left, parts, error), 2 * length);
    EXPECT_EQ(error, 0);
    std::array<std::byte, 4000> first, second;
    ASSERT_EQ(stream.read(connection.right, std::span(first).first(length + 1), second, error), 2 * length);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(text_of(std::span(first).first(length + 1)), head + "b");
    EXPECT_EQ(text_of(std::span(second).first(length - 1)), tail.substr(1));
  }
}

TEST(ByteStream, SaysWhatKeepsItFromMoving) {
  Connection connection;
  ByteStream stream;
  std::array<std::byte, 16> some{};
  int error = 0;
  EXPECT_EQ(stream.read(connection.left, some, error), 0u);
  EXPECT_EQ(error, EAGAIN);
  EXPECT_EQ(stream.read(connection.left, std::span<std::byte>(), error), 0u);
  EXPECT_EQ(error, 0);
  while (stream.write(connection.left, some, error) > 0) {
  }
  EXPECT_EQ(error, EAGAIN);
  EXPECT_EQ(stream.write(connection.left, std::span<const std::byte>(), error), 0u);
  EXPECT_EQ(error, 0);
  ASSERT_EQ(shutdown(connection.left, SHUT_WR), 0);
  std::array<std::byte, 4096> drain;
  while (stream.read(connection.right, drain, error) > 0) {
  }
  EXPECT_EQ(error, EPIPE);
  EXPECT_EQ(stream.write(connection.left, some, error), 0u);
  EXPECT_EQ(error, EPIPE);
}

}  // namespace
}  // namespace tutti::security
