// Tests `tutti debug` on ranks that are stuck, and the dumps that ranks write when they fail.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string bin = TUTTI_BIN_DIR;

std::string read_file(const std::string& name) {
  std::ifstream file(name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// `Ranks` starts ranks without a launcher, so that the test knows their processes.
class Ranks {
 public:
  Ranks(int size, const std::string& mode, Process::Environment environment = {}) {
    environment["TUTTI_WORLD_SIZE"] = std::to_string(size);
    environment["TUTTI_INIT_METHOD"] = "file://" + folder_ / "session";
    for (int rank = 0; rank < size; ++rank) {
      environment["TUTTI_RANK"] = std::to_string(rank);
      processes_.push_back(
          std::make_unique<Process>(std::vector<std::string>{bin + "/tests/debug_rank", mode}, environment));
    }
  }
  Process& at(int rank) { return *processes_[static_cast<std::size_t>(rank)]; }
  std::string pid(int rank) { return std::to_string(at(rank).pid()); }
  std::vector<std::string> pids() {
    std::vector<std::string> all;
    for (const auto& process : processes_) all.push_back(std::to_string(process->pid()));
    return all;
  }
  // Waits until each rank has reached the place where it is stuck.
  void wait_until_stuck() {
    for (const auto& process : processes_)
      ASSERT_TRUE(process->wait_for_output("stuck")) << process->report();
  }

 private:
  ScratchFolder folder_;
  std::vector<std::unique_ptr<Process>> processes_;
};

std::string debug(std::vector<std::string> arguments, int expected = 0) {
  arguments.insert(arguments.begin(), {bin + "/tutti", "debug"});
  Process process(arguments);
  EXPECT_EQ(process.wait(), expected) << process.report();
  return process.out() + process.err();
}

std::string merged(Ranks& ranks) {
  auto arguments = ranks.pids();
  arguments.insert(arguments.begin(), "--merge");
  return debug(arguments);
}

// Repeats `tutti debug` until its answer contains `expected`. A single answer cannot distinguish a
// stuck rank from a rank that waits only briefly.
std::string merged(Ranks& ranks, const std::string& expected) {
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text = merged(ranks);
    if (text.find(expected) != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return text;
}

class DebugOver : public ::testing::TestWithParam<std::string> {};

TEST_P(DebugOver, TheRankThatDoesNotComeIsNamed) {
  Ranks ranks(3, "late", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  const std::string text = merged(ranks, "ranks 0, 1 wait");
  EXPECT_THAT(text, HasSubstr("pid " + ranks.pid(2) +
                              ") is BEHIND: ranks 0, 1 wait for it in #21 "
                              "all_reduce(count=100, float32, sum); its last call was #20 barrier()"));
}

TEST_P(DebugOver, ASplitReadsAsSplit) {
  Ranks ranks(3, "split", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  const std::string text = merged(ranks, "ranks 0, 1 wait");
  EXPECT_THAT(text, HasSubstr("pid " + ranks.pid(2) + ") is BEHIND: ranks 0, 1 wait for it in #21 split();"));
  const json dump = json::parse(debug({ranks.pid(0)}));
  const json& last = dump["communicators"].back()["operations"].back();
  EXPECT_EQ(last["call"], "split()");
  EXPECT_EQ(last["kind"], "split");
  EXPECT_FALSE(last.contains("type") || last.contains("bytes")) << last;
}

TEST_P(DebugOver, ACallbackThatDoesNotComeBackIsNamed) {
  Ranks ranks(2, "callback", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  const json dump = json::parse(debug({ranks.pid(1)}));
  EXPECT_FALSE(dump["progress"].get<bool>());
  EXPECT_THAT(merged(ranks, "BEHIND"), HasSubstr("one of its threads stays in a callback"));
}

TEST_P(DebugOver, RanksThatWaitForEachOtherAreNamed) {
  Ranks ranks(3, "circle", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  const std::string text = merged(ranks, "CIRCLE");
  EXPECT_THAT(text, HasSubstr("CIRCLE: rank 0 "));
  EXPECT_THAT(text, HasSubstr("waits for rank 1 in recv(count=100, float32)"));
  EXPECT_THAT(text, Not(HasSubstr("BEHIND")));
}

TEST_P(DebugOver, ARankThatIsStoppedIsNamed) {
  Ranks ranks(2, "late", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  ranks.at(1).signal(SIGSTOP);
  const std::string text = merged(ranks, "BEHIND");
  EXPECT_THAT(text, HasSubstr("process " + ranks.pid(1) + ": no answer: it is stopped"));
  EXPECT_THAT(text, HasSubstr("pid " + ranks.pid(1) + ") is BEHIND: rank 0 waits for it in #21"));
}

// The ranks continue to work while `tutti debug` asks them, one after the other.
TEST_P(DebugOver, WhoIsAtWorkIsNotCalledBehind) {
  Ranks ranks(3, "busy", {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.wait_until_stuck();
  const std::string moments = "no rank seems to be stuck: the ranks were asked at different moments";
  const std::string text = merged(ranks, moments);
  EXPECT_THAT(text, HasSubstr(moments));
  EXPECT_THAT(text, Not(HasSubstr("BEHIND")));
}

TEST_P(DebugOver, ADeathLeavesDumpsThatTellWhoIsMissing) {
  const ScratchFolder folder;
  Ranks ranks(3, "late", {{"TUTTI_TRANSPORTS", GetParam()}, {"TUTTI_DUMP", folder.path()}});
  ranks.wait_until_stuck();
  ranks.at(2).signal(SIGKILL);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ranks.at(rank).wait(), 0) << ranks.at(rank).report();
    EXPECT_THAT(ranks.at(rank).out(), HasSubstr("failed: peer_lost"));
  }
  const std::string text = debug({"--merge", folder / "tutti.0.json", folder / "tutti.1.json"});
  EXPECT_THAT(text, HasSubstr("no dump of"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 1"));
  EXPECT_THAT(text, HasSubstr("in #21 all_reduce(count=100, float32, sum)"));
  EXPECT_THAT(text, Not(HasSubstr("no rank is")));
}

TEST_P(DebugOver, AFailureLeavesDumpsThatTellTheMismatch) {
  const ScratchFolder folder;
  Ranks ranks(3, "mismatch", {{"TUTTI_TRANSPORTS", GetParam()}, {"TUTTI_DUMP", folder.path()}});
  std::vector<std::string> arguments = {"--merge"};
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(ranks.at(rank).wait(), 0) << ranks.at(rank).report();
    EXPECT_THAT(ranks.at(rank).out(), HasSubstr("failed: mismatch"));
    arguments.push_back(folder / "tutti." + std::to_string(rank) + ".json");
    const json dump = json::parse(read_file(arguments.back()));
    EXPECT_EQ(dump["rank"], rank);
    EXPECT_EQ(dump["reason"].get<std::string>().find("mismatch: "), 0u) << dump["reason"];
  }
  // The text may name rank 1 or rank 2, because either rank may have learned of the failure before
  // its own call.
  const std::string text = debug(arguments);
  EXPECT_THAT(text, HasSubstr("MISMATCH in #21: rank"));
  EXPECT_THAT(text,
              HasSubstr(" called all_reduce(count=100, float32, sum); rank 0 called broadcast(count=100, "
                        "float32, root=0)"));
  EXPECT_THAT(text, Not(HasSubstr("BEHIND")));
}

INSTANTIATE_TEST_SUITE_P(Transports, DebugOver, ::testing::Values("shm,tcp", "tcp"),
                         [](const auto& tested) { return tested.param == "tcp" ? "tcp" : "shm"; });

TEST(Debug, ADumpTellsTheLastOperations) {
  Ranks ranks(2, "late");
  ranks.wait_until_stuck();
  const json dump = json::parse(debug({ranks.pid(0)}));
  EXPECT_EQ(dump["rank"], 0);
  EXPECT_EQ(dump["size"], 2);
  EXPECT_EQ(dump["pid"], ranks.at(0).pid());
  EXPECT_TRUE(dump["progress"].get<bool>());
  const json& communicator = dump["communicators"].back();
  EXPECT_EQ(communicator["issued"], 22);
  EXPECT_EQ(communicator["awaited"][0]["rank"], 1);
  const json& operations = communicator["operations"];
  ASSERT_EQ(operations.size(), 22u);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(operations[i]["sequence"], i);
    EXPECT_EQ(operations[i]["state"], i < 21 ? "finished" : "running");
  }
  const json& last = operations.back();
  EXPECT_EQ(last["kind"], "all_reduce");
  EXPECT_EQ(last["type"], "float32");
  EXPECT_EQ(last["op"], "sum");
  EXPECT_EQ(last["count"], 100);
  EXPECT_EQ(last["bytes"], 400);
  EXPECT_EQ(last["waiting_for"], json::array({1}));
  EXPECT_FALSE(last["algorithm"].get<std::string>().empty());
  EXPECT_GT(last["issued_us"], operations.front()["ended_us"]);
}

TEST(Debug, RanksAreListed) {
  Ranks ranks(2, "late");
  ranks.wait_until_stuck();
  const std::string text = debug({});
  EXPECT_THAT(text, HasSubstr(ranks.pid(0) + "  rank 0 of 2"));
  EXPECT_THAT(text, HasSubstr(ranks.pid(1) + "  rank 1 of 2"));
}

TEST(Debug, ARankMayRefuseToAnswer) {
  Ranks ranks(1, "late", {{"TUTTI_DEBUG", "0"}});
  ranks.wait_until_stuck();
  EXPECT_THAT(debug({ranks.pid(0)}, 1), HasSubstr("does not use tutti"));
}

// A forked child can end, although it lacks the parent's threads. The child leaks the memory that
// those threads would have freed, so leak detection is off.
TEST(Debug, AForkedChildEnds) {
  Ranks ranks(1, "child", {{"ASAN_OPTIONS", "detect_leaks=0"}});
  EXPECT_EQ(ranks.at(0).wait(), 0) << ranks.at(0).report();
  EXPECT_THAT(ranks.at(0).out(), HasSubstr("child ended with 0"));
}

TEST(Debug, WrongArgumentsAreRefused) {
  EXPECT_THAT(debug({"12x"}, 2), HasSubstr("`12x` is not a process"));
  EXPECT_THAT(debug({"--merge", "/etc"}, 1), HasSubstr("/etc: is a folder; name the files in it"));
  EXPECT_THAT(debug({"--merge", "/no/such/file"}, 1), HasSubstr("/no/such/file: cannot be read"));
  EXPECT_THAT(debug({"--merge", "/etc/passwd"}, 1),
              HasSubstr("/etc/passwd: is not a dump of a rank: parse error"));
  EXPECT_THAT(debug({"--merge", "named by\x1b[31mothers"}, 1), HasSubstr("named by\\x1b[31mothers: "));
}

TEST(Debug, JobsAreToldApartAndWhatIsNoDumpIsNamed) {
  Ranks one(2, "late", {{"TUTTI_JOB_ID", "one"}});
  Ranks two(2, "late", {{"TUTTI_JOB_ID", "two"}});
  one.wait_until_stuck();
  two.wait_until_stuck();
  std::vector<std::string> arguments = {"--merge", "/etc/passwd", "/no/such/file"};
  for (Ranks* ranks : {&one, &two}) std::ranges::copy(ranks->pids(), std::back_inserter(arguments));
  const std::string text = debug(arguments, 1);
  const std::size_t first = text.find("job one of 2 ranks\ncommunicator ");
  const std::size_t second = text.find("job two of 2 ranks\ncommunicator ");
  ASSERT_LT(first, second) << text;
  ASSERT_LT(second, text.size()) << text;
  EXPECT_THAT(text, HasSubstr("/etc/passwd: is not a dump of a rank: "));
  EXPECT_THAT(text, HasSubstr("/no/such/file: cannot be read"));
}

TEST(Debug, AFolderThatIsNotThereIsSaid) {
  Ranks ranks(2, "mismatch", {{"TUTTI_DUMP", "/no/such/folder/%r.json"}});
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ranks.at(rank).wait(), 0) << ranks.at(rank).report();
    EXPECT_THAT(ranks.at(rank).err(), HasSubstr("cannot write /no/such/folder/"));
  }
}

// The parameter of `TraceOf` says how the ranks of a traced run end.
class TraceOf : public ::testing::TestWithParam<std::string> {};

TEST_P(TraceOf, IsValidJsonOfAllOperationsAndWaits) {
  const ScratchFolder folder;
  Ranks ranks(2, GetParam(), {{"TUTTI_TRACE", folder / "trace.json"}});
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(ranks.at(rank).wait().has_value()) << ranks.at(rank).report();
    const json events = json::parse(read_file(folder / "trace." + std::to_string(rank) + ".json"));
    ASSERT_TRUE(events.is_array());
    EXPECT_EQ(events[0]["ph"], "M");
    EXPECT_THAT(events[0]["args"]["name"].get<std::string>(), HasSubstr("rank " + std::to_string(rank)));
    std::map<std::string, json> open;
    std::map<std::string, int> done;
    int waits = 0;
    for (const json& event : events) {
      if (event["ph"] == "M") continue;
      EXPECT_EQ(event["pid"], rank);
      EXPECT_GT(event["ts"].get<double>(), 0);
      if (event["ph"] == "X") {
        ++waits;
        EXPECT_EQ(event["cat"], "wait");
        EXPECT_GE(event["dur"].get<double>(), 0);
        continue;
      }
      const std::string id = event["id2"]["local"];
      if (event["ph"] == "b") {
        EXPECT_TRUE(open.emplace(id, event).second) << id;
      } else if (event["ph"] == "e") {
        ASSERT_TRUE(open.contains(id)) << id;
        EXPECT_GE(event["ts"], open[id]["ts"]);
        ++done[open[id]["name"]];
      }
    }
    EXPECT_EQ(done["all_reduce"], 21);
    EXPECT_EQ(done["barrier"], 2);
    EXPECT_EQ(done["broadcast"], 1);
    EXPECT_EQ(done["split"], 2);  // a split takes two exchanges between the ranks
    EXPECT_EQ(done["all_gather"], 0);
    EXPECT_EQ(done[rank == 0 ? "send" : "recv"], 1);
    if (rank == 1) {
      EXPECT_GT(waits, 0);  // rank 1 waited for rank 0, which is late
    }
    const auto first =
        std::ranges::find_if(open, [](const auto& entry) { return entry.second["name"] == "all_reduce"; });
    ASSERT_NE(first, open.end());
    EXPECT_EQ(first->second["args"]["bytes"], 400);
    EXPECT_EQ(first->second["args"]["call"], "all_reduce(count=100, float32, sum)");
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, TraceOf, ::testing::Values("work", "abort", "exit"),
                         [](const auto& tested) { return tested.param; });

TEST(Trace, AFolderThatIsNotThereIsSaid) {
  Ranks ranks(2, "work", {{"TUTTI_TRACE", "/no/such/folder/%r.json"}});
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ranks.at(rank).wait(), 0) << ranks.at(rank).report();
    EXPECT_THAT(ranks.at(rank).err(), HasSubstr("cannot write the trace /no/such/folder/"));
  }
}

}  // namespace
}  // namespace tutti::test
