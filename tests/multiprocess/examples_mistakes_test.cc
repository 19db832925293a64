// Starts the example 01_hello incorrectly. The example must describe the mistake in one line.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/multiprocess/example_world.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Expects one line that contains all of `words`, and exit status 1.
void expect_error(Process& process, const std::vector<std::string>& words) {
  EXPECT_EQ(process.wait(), 1) << process.report();
  const std::string text = process.err();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << process.report();
  EXPECT_THAT(text, testing::StartsWith("01_hello: "));
  for (const std::string& word : words) EXPECT_THAT(text, HasSubstr(word)) << process.report();
}

struct Mistake {
  const char* name;
  Arguments arguments;
  Process::Environment environment;
  std::vector<std::string> words;  // the message must contain these words
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class WrongSettings : public testing::TestWithParam<Mistake> {};

TEST_P(WrongSettings, GiveOneClearError) {
  Process::Environment environment = GetParam().environment;
  environment.emplace("TUTTI_INIT_TIMEOUT", "5s");
  Process process(command("01_hello", GetParam().arguments), environment);
  expect_error(process, GetParam().words);
}

const std::vector<Mistake> mistakes{
    {"RankArgumentTooLarge", by_url("tcp://127.0.0.1:1", 2, 2), {}, {"rank 2", "world size", "2"}},
    {"RankArgumentNegative", by_url("tcp://127.0.0.1:1", -1, 2), {}, {"rank", "-1"}},
    {"RankOfTheUrlTooLarge", {"--init-method=tcp://127.0.0.1:1?rank=7&world_size=3"}, {}, {"7", "3"}},
    {"RankVariableTooLarge", {}, by_environment(1, 5, 4), {"RANK", "5", "WORLD_SIZE", "4"}},
    {"TuttiRankTooLarge",
     {"--init-method=tcp://127.0.0.1:1"},
     {{"TUTTI_RANK", "5"}, {"TUTTI_WORLD_SIZE", "4"}},
     {"TUTTI_RANK", "5", "TUTTI_WORLD_SIZE", "4"}},
    {"RankNotANumber",
     {},
     {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}, {"RANK", "first"}, {"WORLD_SIZE", "2"}},
     {"RANK", "first"}},
    {"ArgumentAgainstUrl",
     {"--init-method=tcp://127.0.0.1:1?rank=1&world_size=3", "--rank=0"},
     {},
     {"rank", "0", "1"}},
    {"ArgumentAgainstTuttiVariable",
     by_url("tcp://127.0.0.1:1", 0, 2),
     {{"TUTTI_WORLD_SIZE", "3"}, {"TUTTI_RANK", "0"}},
     {"TUTTI_WORLD_SIZE", "2", "3"}},
    {"NoMasterPort", {}, {{"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_PORT"}},
    {"NoMasterPortWithEnvUrl",
     {"--init-method=env://"},
     {{"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}},
     {"MASTER_PORT"}},
    {"NoRank", {"--init-method=tcp://127.0.0.1:1", "--world-size=2"}, {}, {"rank"}},
    {"NoWorldSize", {"--init-method=tcp://127.0.0.1:1", "--rank=0"}, {}, {"world"}},
    {"UnknownScheme", by_url("tpc://127.0.0.1:1", 0, 2), {}, {"tpc://"}},
    {"UrlWithoutPort", by_url("tcp://127.0.0.1", 0, 2), {}, {"tcp://127.0.0.1", "port"}},
    {"UrlWithBadPort", by_url("tcp://127.0.0.1:99999", 0, 2), {}, {"99999"}},
    {"FolderOfFileMissing", by_url("file:///nonexistent/folder/meet", 0, 2), {}, {"/nonexistent/folder"}},
    {"UnresolvableName", by_url("tcp://no-such-host.invalid:29500", 1, 2), {}, {"no-such-host.invalid"}},
    {"UnknownBackend",
     {"--rank=0", "--world-size=1", "--init-method=tcp://127.0.0.1:1", "--backend=warp"},
     {},
     {"warp"}},
    {"UnknownArgument", {"--bogus=1"}, {}, {"--bogus"}},
    {"ArgumentNotANumber", {"--rank=x"}, {}, {"--rank", "x"}},
};
INSTANTIATE_TEST_SUITE_P(, WrongSettings, testing::ValuesIn(mistakes),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(WrongWorld, NobodyAtRankZero) {
  const std::uint16_t port = unused_port();
  Process process(command("01_hello", by_url(tcp_url(port), 1, 2)), {{"TUTTI_INIT_TIMEOUT", "4s"}});
  expect_error(process, {"127.0.0.1", std::to_string(port)});
}

TEST(WrongWorld, OneRankMissing) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  for (const int rank : {0, 2})
    world.start("01_hello", by_url(url, rank, 3), {{"TUTTI_INIT_TIMEOUT", "10s"}});
  for (int i = 0; i < 2; ++i) expect_error(world[i], {"rank 1 has not arrived"});
}

TEST(WrongWorld, SameRankTwice) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  for (const int rank : {0, 1, 1})
    world.start("01_hello", by_url(url, rank, 3), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  for (int i = 0; i < 3; ++i) expect_error(world[i], {"rank 1 is taken twice", "pid"});
}

TEST(WrongWorld, RankZeroTwice) {
  const std::uint16_t port = unused_port();
  ExampleWorld world;
  for (int i = 0; i < 2; ++i)
    world.start("01_hello", by_url(tcp_url(port), 0, 2), {{"TUTTI_INIT_TIMEOUT", "10s"}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(world[i].wait(), 1) << world[i].report();
  EXPECT_THAT(world[0].err() + world[1].err(), AllOf(HasSubstr(std::to_string(port)), HasSubstr("in use"),
                                                     HasSubstr("rank 1 has not arrived")));
}

TEST(WrongWorld, DifferentWorldSizes) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  world.start("01_hello", by_url(url, 0, 2), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  world.start("01_hello", by_url(url, 1, 3), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  for (int i = 0; i < 2; ++i) expect_error(world[i], {"world size", "2 on rank 0", "3 on rank 1"});
}

TEST(WrongWorld, PortInUse) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  {
    // Both sides fail: the serving rank cannot listen, and the joining rank meets a process that does not
    // speak the protocol.
    ExampleWorld world;
    for (int rank = 0; rank < 2; ++rank) {
      world.start("01_hello", by_url(tcp_url(port), rank, 2), {{"TUTTI_INIT_TIMEOUT", "6s"}});
    }
    expect_error(world[0], {std::to_string(port), "in use"});
    expect_error(world[1], {std::to_string(port)});
  }
  close(listener);
}

}  // namespace
}  // namespace tutti::test
