// Tests the tables and the verdict of `tutti doctor`.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/doctor_hosts.h"
#include "tools/doctor/report.h"

namespace tutti::tools::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DoctorReport, ShowsHostsInterfacesAndConnections) {
  Examined examined = healthy(2);
  examined.hosts.push_back({.name = "gamma", .problem = "host gamma: no"});
  cut(path_of(examined, 0, 1));
  path_of(examined, 1, 0).largest_packet = 1400;
  examined.hosts[0].facts->rdma = {{.name = "mlx5_0", .active = true}, {.name = "mlx5_1", .active = false}};
  EXPECT_EQ(tables(examined, false),
            R"(host   tutti                 kernel  cores    memlock  nofile  /dev/shm    clock  GPUs  RDMA
alpha  0.1.0 (3fa92c11d0e4)  6.1.0       4  unlimited    1024  1G of 1G  +0.1 ms     0  mlx5_0 up, mlx5_1 down
beta   0.1.0 (3fa92c11d0e4)  6.1.0       4  unlimited    1024  1G of 1G  +0.1 ms     0  -
gamma  not up

host   interface  address       MTU      speed  used
alpha  eth0       10.0.0.1/24  1500  10.0 Gb/s  yes
beta   eth0       10.0.0.2/24  1500  10.0 Gb/s  yes

from   to     over          address                                   round trip  bandwidth        packet
alpha  beta   eth0 -> eth0  10.0.0.2 port 4000: Connection timed out
beta   alpha  eth0 -> eth0  10.0.0.1                                       50 us  8.00 Gb/s  1400 of 1500
)");
}

TEST(DoctorReport, SumsUpTheConnectionsOfManyHosts) {
  Examined examined = healthy(9);
  path_of(examined, 0, 3).round_trip_us = 2500;
  path_of(examined, 0, 4).bandwidth = 1e8;
  cut(path_of(examined, 0, 5));
  const std::string summed = tables(examined, false);
  EXPECT_THAT(summed,
              HasSubstr("from   round trip  longest  to     bandwidth      least  to     not reached\n"
                        "alpha       50 us   2.5 ms  delta  8.00 Gb/s   800 Mb/s  host4            1\n"));
  EXPECT_THAT(summed, Not(HasSubstr(" -> ")));
  EXPECT_THAT(tables(examined, true),
              HasSubstr("alpha  host5  eth0 -> eth0  10.0.0.6 port 4000: Connection timed out"));
}

TEST(DoctorReport, CannotControlATerminal) {
  Examined examined = healthy(2);
  const std::string evil = "\x1b]0;evil\a\n";
  HostFacts& facts = *examined.hosts[1].facts;
  facts.version = facts.build = facts.kernel = evil;
  facts.rdma = {{.name = evil}};
  facts.interfaces[1].name = facts.interfaces[1].addresses[0].address = evil;
  path_of(examined, 0, 1).to = path_of(examined, 0, 1).from = evil;
  cut(path_of(examined, 1, 0));
  path_of(examined, 1, 0).error = evil;
  const std::string text = tables(examined, false);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(tables(healthy(2), false), '\n'));
}

TEST(DoctorReport, GivesAVerdict) {
  EXPECT_EQ(verdict({}), "nothing is wrong\n");
  EXPECT_EQ(verdict({{.what = "a\nb", .mend = "m"}}), "1 problem:\n1. a\n   b\n   to fix it: m\n");
  EXPECT_EQ(
      verdict({{.what = "a", .mend = "m"}, {.what = "b", .mend = "n"}, {.what = "c", .is_problem = false}}),
      "2 problems:\n1. a\n   to fix it: m\n2. b\n   to fix it: n\nnote: c\n");
  EXPECT_EQ(verdict({{.what = "c", .is_problem = false}}), "nothing is wrong\nnote: c\n");
}

}  // namespace
}  // namespace tutti::tools::doctor
