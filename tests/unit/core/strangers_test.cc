// Tests how listeners treat connections that have not yet identified themselves.
#include <fstream>
#include <list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/log.h>

#include "core/security/crowd.h"
#include "core/security/refusals.h"
#include "tests/support/guards.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/core/guard_ends.h"

namespace tutti::security {
namespace {

std::size_t index_of_first_to_go(const std::vector<Crowd>& strangers) {
  const auto found = first_to_go(strangers, [](const Crowd& stranger) { return stranger; });
  return static_cast<std::size_t>(found - strangers.begin());
}

TEST(Crowd, TheOldestOfTheLargestGoes) {
  EXPECT_EQ(index_of_first_to_go({{1, false}}), 0u);
  EXPECT_EQ(index_of_first_to_go({{1, false}, {2, false}, {2, false}}), 1u);
  EXPECT_EQ(index_of_first_to_go({{1, true}, {2, false}, {1, false}, {2, true}}), 0u);
}

TEST(Crowd, ThatIsSilentDisplacesNobodyOfItsHostWhoHasBegun) {
  EXPECT_EQ(index_of_first_to_go({{1, true}, {1, false}, {1, false}}), 1u);
  EXPECT_EQ(index_of_first_to_go({{1, true}, {1, true}, {1, false}}), 0u);
}

// Returns a guard that holds the token "secret" and has refused a peer with the token `token`. An empty
// `token` means that the peer has none.
Guard refused(const std::string& token) {
  Connection connection;
  Guard accepts = Guard::accepting(test::holder_of("secret"), Service::data, 2,
                                   Deadline::after(std::chrono::seconds(60)));
  if (token.empty()) {
    send_all(connection.left, "tutti?\r\n");
    accepts.advance(connection.right);
  } else {
    Guard connects = test::guard_of(token, {Service::data, 1, 2});
    meet(connection, connects, accepts);
  }
  EXPECT_EQ(accepts.status().code(), Code::unauthenticated);
  return accepts;
}

TEST(Refusals, OfOneSortLeaveRoomForWarningsOfAnother) {
  const test::ScratchFolder folder;
  const std::string file = folder.path() + "/log";
  ASSERT_TRUE(log::configure(log::Level::warn, file).ok());
  Refusals refusals;
  for (int i = 0; i < 30; ++i) refusals.add("tcp", refused(""));
  refusals.add("tcp", refused("another"));
  EXPECT_TRUE(log::configure(log::Level::warn).ok());
  int without = 0, with_another = 0;
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    without += line.find("has no token") != line.npos ? 1 : 0;
    with_another += line.find("has another token") != line.npos ? 1 : 0;
  }
  EXPECT_EQ(without, 10);
  EXPECT_EQ(with_another, 1);
}

}  // namespace
}  // namespace tutti::security
