// Tests the messages between `tutti doctor` and its probes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/doctor_hosts.h"
#include "tools/doctor/messages.h"

namespace tutti::tools::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DoctorMessages, AreReadAsTheyWereWritten) {
  ProbeAnswer answer;
  answer.facts = healthy_facts(3, 2);
  answer.facts.gpus = {"H100", "not UTF-8: \xff"};
  answer.facts.rdma = {{.name = "mlx5_0", .active = true}};
  answer.clock_ns = 1'700'000'000'123'456'789;
  answer.routes = {"10.0.0.1", ""};
  answer.paths = {healthy_path(0, 1)};
  answer.facts.cards = "mlx5_0 port 1";
  answer.port = 4711;
  answer.failure = "no packet came back";
  const std::string line = to_line(answer);
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  const auto read = parse_answer(line);
  ASSERT_TRUE(read.ok()) << line;
  EXPECT_EQ(to_line(*read), line);
  EXPECT_EQ(read->facts.memlock, unlimited);
  EXPECT_EQ(read->clock_ns, answer.clock_ns);
  EXPECT_EQ(read->paths.at(0).outcome, Outcome::reached);

  const ProbeCommand command{
      .what = "test", .host = 7, .pass = "p", .targets = {{1, "::1", 9}}, .cards = {1, "::1", 4711}};
  const auto same = parse_command(to_line(command));
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(to_line(*same), to_line(command));
}

TEST(DoctorMessages, MayLackMembers) {
  EXPECT_TRUE(parse_answer("{}").ok());
  EXPECT_EQ(parse_answer(R"({"paths":[{"outcome":"strange"}]})")->paths.at(0).outcome, Outcome::failed);
}

TEST(DoctorMessages, AreRefusedIfTheyMakeNoSense) {
  for (const char* line :
       {"", "garbage", "[]", "1", "{\"facts\":7}", "{\"paths\":{}}", "{\"clock_ns\":\"now\"}",
        "{\"routes\":[1]}", "{} {}", "{\"clock_ns\":1e999}", "{\"clock_ns\":1e30}",
        "{\"facts\":{\"cores\":1.5}}", "{\"facts\":{\"cores\":4294967297}}", "{\"paths\":[{\"port\":65558}]}",
        "{\"facts\":{\"memlock\":18446744073709551616}}"}) {
    EXPECT_EQ(parse_answer(line).status().code(), Code::protocol_error) << line;
  }
  EXPECT_EQ(parse_answer("{\"paths\":[{\"round_trip_us\":1.5}]}")->paths.at(0).round_trip_us, 1.5);
  ProbeAnswer answer;
  answer.facts.interfaces.resize(257);
  EXPECT_FALSE(parse_answer(to_line(answer)).ok());
}

}  // namespace
}  // namespace tutti::tools::doctor
