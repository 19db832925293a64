#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tutti/log.h>

#include "tests/support/scratch_folder.h"
#include "tests/unit/transport/tcp_world.h"
#include "transport/tcp/congestion.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {
namespace {

std::string of_the_system() {
  std::string name;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> name;
  return name;
}

bool is_available(const std::string& wanted) {
  std::ifstream file("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  for (std::string name; file >> name;) {
    if (name == wanted) return true;
  }
  return false;
}

// Returns the congestion controls of this process's connections.
std::multiset<std::string> in_use() {
  std::multiset<std::string> names;
  for (const int descriptor : OpenSockets::descriptors(true)) names.insert(congestion_of(descriptor));
  return names;
}

std::multiset<std::string> after_an_exchange(const std::string& setting) {
  Options options;
  options.congestion = setting;
  Pair world(options);
  expect_exchange(world[0], 0, world[1], 1, 1);
  return in_use();
}

TEST(TcpCongestion, IsRenoWithinAHostWherePermitted) {
  if (!is_available("reno")) GTEST_SKIP() << "this system does not permit reno";
  EXPECT_EQ(after_an_exchange(""), (std::multiset<std::string>{"reno", "reno"}));
}

TEST(TcpCongestion, IsTheSystemsIfTheUserSaysSo) {
  const std::string name = of_the_system();
  EXPECT_EQ(after_an_exchange("system"), (std::multiset<std::string>{name, name}));
}

TEST(TcpCongestion, IsTheSystemsIfTheKernelRefuses) {
  const std::string name = of_the_system();
  EXPECT_EQ(after_an_exchange("no such thing"), (std::multiset<std::string>{name, name}));
}

// Returns the log for a setting.
std::string log_about(const std::string& setting) {
  const test::ScratchFolder folder;
  const std::string file = folder.path() + "/log";
  EXPECT_TRUE(log::configure(log::Level::warn, file).ok());
  const Congestion congestion(setting);
  EXPECT_TRUE(log::configure(log::Level::warn).ok());
  std::ifstream input(file);
  return {std::istreambuf_iterator<char>(input), {}};
}

TEST(TcpCongestion, ThatTheKernelRefusesIsWarnedOf) {
  EXPECT_NE(log_about("no such thing").find("'no such thing' (TUTTI_TCP_CONGESTION): No such file"),
            std::string::npos);
  for (const std::string& known : {std::string(), std::string("system"), of_the_system()}) {
    EXPECT_EQ(log_about(known), "") << known;
  }
}

TEST(TcpCongestion, FollowsTheAddressWhereNothingIsSaid) {
  const auto choice = [](const char* address, bool same_host) {
    return Congestion("").choose(*tutti::parse_address(address, 0), same_host);
  };
  for (const char* near : {"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.7.7",
                           "169.254.1.1", "::1", "fd00::1", "fe80::1"}) {
    EXPECT_EQ(choice(near, false), "reno") << near;
  }
  for (const char* far :
       {"8.8.8.8", "172.15.0.1", "172.32.0.1", "192.169.0.1", "0.0.0.0", "2001:db8::1", "::"}) {
    EXPECT_EQ(choice(far, false), "") << far;
    EXPECT_EQ(choice(far, true), "reno") << far;
  }
}

}  // namespace
}  // namespace tutti::tcp
