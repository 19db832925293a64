#include "tools/run/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::tools {
namespace {

using testing::ElementsAre;
using Hosts = std::vector<ListedHost>;

Hosts hosts_in(std::string_view text) { return parse_hostfile("hosts", text).take(); }

std::string error_in(std::string_view text) {
  const auto hosts = parse_hostfile("hosts", text);
  return hosts.ok() ? "no error" : hosts.status().to_string();
}

// Returns the error without the name and the line of the file.
std::string error_in_line(const std::string& line) {
  const std::string error = error_in(line);
  const std::string begin = "invalid_argument: hosts:1: ";
  return error.starts_with(begin) ? error.substr(begin.size()) : error;
}

TEST(Hostfile, EachForm) {
  EXPECT_THAT(hosts_in("alpha slots=8            # Open MPI's form\n"
                       "beta  slots = 8 max_slots=16\n"
                       "gamma:4#Hydra's form\n"
                       "\n"
                       "   # only a comment\n"
                       "alice@delta slots=2\n"
                       "10.0.0.7\tslots= 2  max-slots =3\r\n"
                       "[fd00::7]:2\n"
                       "fd00::8 slots=2\n"
                       "bob@[fe80::1%eth0]\n"
                       "node-1.my_rack"),
              ElementsAre(ListedHost{"alpha", "", 8, {}}, ListedHost{"beta", "", 8, 16},
                          ListedHost{"gamma", "", 4, {}}, ListedHost{"delta", "alice", 2, {}},
                          ListedHost{"10.0.0.7", "", 2, 3}, ListedHost{"fd00::7", "", 2, {}},
                          ListedHost{"fd00::8", "", 2, {}}, ListedHost{"fe80::1%eth0", "bob", {}, {}},
                          ListedHost{"node-1.my_rack", "", {}, {}}));
}

// Batch systems name a host once for each slot.
TEST(Hostfile, LinesOfOneHostAddUp) {
  EXPECT_THAT(hosts_in("beta\nalpha\nbeta\nbeta\n"),
              ElementsAre(ListedHost{"beta", "", 3, {}}, ListedHost{"alpha", "", {}, {}}));
  EXPECT_THAT(hosts_in("alpha:4\nalpha\nalpha slots=2"), ElementsAre(ListedHost{"alpha", "", 7, {}}));
  EXPECT_THAT(hosts_in("fd00::7\n[fd00::7]:2"), ElementsAre(ListedHost{"fd00::7", "", 3, {}}));
}

TEST(Hostfile, WhatALineLeavesOutMayStandInAnother) {
  EXPECT_THAT(hosts_in("delta\nalice@delta max_slots=4\ndelta max_slots=4\n"),
              ElementsAre(ListedHost{"delta", "alice", 3, 4}));
}

TEST(Hostfile, ErrorsNameTheFileAndTheLine) {
  EXPECT_EQ(error_in("alpha\nbeta slot=8\n"),
            "invalid_argument: hosts:2: `slot=8` is not known here; a line is a host, then slots=N and "
            "max_slots=N");
  EXPECT_EQ(error_in("# comment\r\n\r\nbeta slots=0"),
            "invalid_argument: hosts:3: `slots=0`: the number of slots must be from 1 to 1048576");
  EXPECT_EQ(error_in("bob@delta\nalpha\nalice@delta"),
            "invalid_argument: hosts:3: delta is listed for two users, bob and alice");
  EXPECT_EQ(error_in("alpha slots=4 max_slots=2"),
            "invalid_argument: hosts:1: alpha has 4 slots, more than max_slots=2");
  EXPECT_EQ(error_in("alpha max_slots=2\nalpha\nalpha"),
            "invalid_argument: hosts:3: alpha has 3 slots, more than max_slots=2");
  EXPECT_EQ(error_in("alpha max_slots=2\nalpha max_slots=3"),
            "invalid_argument: hosts:2: alpha is listed with max_slots=2 and max_slots=3");
  EXPECT_EQ(error_in("alpha:1048576\nalpha"),
            "invalid_argument: hosts:2: alpha has 1048577 slots, more than 1048576");
  EXPECT_EQ(error_in("# nothing\n\n"), "invalid_argument: hosts: no host in it");
}

TEST(Hostfile, WordsThatAreNoHosts) {
  for (const std::string word : {"-oProxyCommand", "-v",      "al/pha",     "a;b",      "a,b",
                                 "$HOME",          "=",       "a=3",        "[alpha]",  "[fd00::7",
                                 "[fd00::7]2",     "[",       "[]",         "fd00:::7", "a:b:c",
                                 "fe80::1%",       ":4",      "fe80::1%-x", "alice@",   "alice@-v",
                                 "a@b@c",          "\xc3\xa4"}) {
    EXPECT_EQ(error_in_line(word), "`" + word + "` is not a host; a host is NAME, NAME:N or USER@NAME");
  }
  for (const std::string word : {"@alpha", "-l@alpha", "a/b@alpha"}) {
    EXPECT_EQ(error_in_line(word), "`" + word + "` does not begin with the name of a user");
  }
}

TEST(Hostfile, NumbersThatAreNone) {
  for (const std::string word : {"alpha:", "alpha:x", "alpha:0", "alpha:-1", "alpha:+1", "alpha:1.5",
                                 "alpha:1048577", "alpha:99999999999999999999", "[fd00::7]:"}) {
    EXPECT_EQ(error_in_line(word), "`" + word + "`: the number of slots must be from 1 to 1048576");
  }
  EXPECT_EQ(error_in_line("alpha max_slots="), "`max_slots=`: the number of slots must be from 1 to 1048576");
  EXPECT_EQ(error_in_line("alpha:2 slots=2"), "`slots=2`: the number is given twice");
  EXPECT_EQ(error_in_line("alpha max_slots=2 max-slots=2"), "`max-slots=2`: the number is given twice");
}

// A user may name a program in place of a hostfile by mistake.
TEST(Hostfile, WordsInErrorsAreShortAndPrintable) {
  EXPECT_EQ(error_in_line("\x1b[2J"), "`\\x1b[2J` is not a host; a host is NAME, NAME:N or USER@NAME");
  EXPECT_EQ(error_in_line(std::string("::1\0x", 5)),
            "`::1\\x00x` is not a host; a host is NAME, NAME:N or USER@NAME");
  EXPECT_EQ(error_in_line(std::string(1000, '/')),
            "`" + std::string(60, '/') + "...` is not a host; a host is NAME, NAME:N or USER@NAME");
}

TEST(HostList, SeveralHostsWithoutNumbersHaveOneSlotEach) {
  EXPECT_THAT(parse_host_list({"alpha:8,bob@beta", "gamma, [fd00::7]:2"}).take(),
              ElementsAre(ListedHost{"alpha", "", 8, {}}, ListedHost{"beta", "bob", 1, {}},
                          ListedHost{"gamma", "", 1, {}}, ListedHost{"fd00::7", "", 2, {}}));
  EXPECT_THAT(parse_host_list({"alpha,beta,alpha"}).take(),
              ElementsAre(ListedHost{"alpha", "", 2, {}}, ListedHost{"beta", "", 1, {}}));
}

TEST(HostList, TheOnlyHostHasAsManySlotsAsProcessors) {
  EXPECT_THAT(parse_host_list({"alpha"}).take(), ElementsAre(ListedHost{"alpha", "", {}, {}}));
  EXPECT_THAT(parse_host_list({"alpha,alpha"}).take(), ElementsAre(ListedHost{"alpha", "", 2, {}}));
}

TEST(HostList, Errors) {
  EXPECT_EQ(parse_host_list({"alpha,al pha"}).status().message(),
            "-H: `al pha` is not a host; a host is NAME, NAME:N or USER@NAME");
  EXPECT_EQ(parse_host_list({"a@alpha,b@alpha"}).status().message(),
            "-H: alpha is listed for two users, a and b");
  EXPECT_EQ(parse_host_list({","}).status().message(), "-H: no host in it");
}

TEST(HostList, ChoosesAmongTheHostsOfAFile) {
  const Hosts of_file = hosts_in("alpha slots=8 max_slots=8\nalice@beta\ngamma:4\n");
  EXPECT_THAT(choose_hosts(of_file, {"gamma,beta"}).take(),
              ElementsAre(ListedHost{"gamma", "", 4, {}}, ListedHost{"beta", "alice", {}, {}}));
  EXPECT_THAT(choose_hosts(of_file, {"alpha:2,gamma,gamma"}).take(),
              ElementsAre(ListedHost{"alpha", "", 2, 8}, ListedHost{"gamma", "", 2, {}}));
  EXPECT_EQ(choose_hosts(of_file, {"delta"}).status().message(), "-H: delta is not in the hostfile");
  EXPECT_EQ(choose_hosts(of_file, {"bob@beta"}).status().message(),
            "-H: beta is listed for two users, bob and alice");
  EXPECT_EQ(choose_hosts(of_file, {"alpha:9"}).status().message(),
            "-H: alpha has 9 slots, more than max_slots=8");
  EXPECT_EQ(choose_hosts(of_file, {""}).status().message(), "-H: no host in it");
}

}  // namespace
}  // namespace tutti::tools
