// Tests guards that look up the credentials of the rank that connects.
#include <string>

#include <gmock/gmock.h>

#include "tests/unit/core/guard_ends.h"

namespace tutti::security {
namespace {

using ::testing::HasSubstr;
using State = Guard::State;

Deadline ample() { return Deadline::after(std::chrono::seconds(60)); }

SharedCredentials holder_of(const std::string& token, bool tls) {
  Settings settings;
  settings.token = Secret(token);
  settings.tls = tls;
  return Credentials::create(settings).take();
}

Guard connector(const std::string& token, bool tls, std::uint32_t from) {
  return Guard::connecting(holder_of(token, tls), {Service::launch, from, nobody}, ample());
}

// Makes a guard that lets ranks 1 and 3 connect, each with its own token.
Guard acceptor_of_two(bool tls, int& asked) {
  const auto credentials_of = [tls, &asked](std::uint32_t from) -> SharedCredentials {
    ++asked;
    if (from != 1 && from != 3) return nullptr;
    return holder_of(from == 1 ? "of one" : "of three", tls);
  };
  return Guard::accepting(credentials_of, Service::launch, nobody, ample());
}

TEST(GuardOfMany, EachRankMayHaveATokenOfItsOwn) {
  for (const bool tls : {false, true}) {
    const auto outcome = [tls](const std::string& token, std::uint32_t from) {
      int asked = 0;
      Guard connects = connector(token, tls, from), accepts = acceptor_of_two(tls, asked);
      Connection connection;
      meet(connection, connects, accepts);
      EXPECT_EQ(asked, 1);
      EXPECT_EQ(connects.status().code(), accepts.status().code());
      EXPECT_EQ(accepts.advance(connection.right) == State::done, accepts.status().ok());
      return accepts.status().code();
    };
    EXPECT_EQ(outcome("of one", 1), Code::ok);
    EXPECT_EQ(outcome("of three", 3), Code::ok);
    EXPECT_EQ(outcome("of one", 3), Code::unauthenticated);
    EXPECT_EQ(outcome("of one", 2), Code::unreachable);
    EXPECT_EQ(outcome("of one", nobody), Code::unreachable);
  }
}

// A guard that finds credentials for no rank must refuse everyone. It must not behave like a guard that needs
// no credentials.
TEST(GuardOfMany, WhereNoRankIsExpectedNobodyPasses) {
  for (const std::string greeting : {"TUTTILN\n and more", "GET / HTTP/1.1\r\n", ""}) {
    Connection connection;
    Guard accepts =
        Guard::accepting([](std::uint32_t) { return SharedCredentials(); }, Service::launch, nobody, ample());
    EXPECT_FALSE(accepts.is_open());
    if (!greeting.empty()) send_all(connection.left, greeting);
    EXPECT_EQ(accepts.advance(connection.right), greeting.empty() ? State::reading : State::failed);
  }
  Connection connection;
  int asked = 0;
  Guard connects = connector("secret", false, 2), accepts = acceptor_of_two(true, asked);
  meet(connection, connects, accepts);
  EXPECT_EQ(accepts.advance(connection.right), State::failed);
  EXPECT_FALSE(accepts.is_open());
  EXPECT_FALSE(accepts.is_noteworthy());
  EXPECT_THAT(accepts.status().message(), HasSubstr("the agent of host 2"));
}

}  // namespace
}  // namespace tutti::security
