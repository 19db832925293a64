#include <fstream>

#include <gmock/gmock.h>

#include <tutti/config.h>

#include "tests/multiprocess/launcher_process.h"
#include "tests/support/scratch_folder.h"

// Tests `tutti bench`, `tutti info` and `tutti explain`, including their output.
namespace tutti::launcher_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* csv_header =
    "peer,collective,bytes,ranks,lat_us_median,lat_us_p99,algbw_GBps,busbw_GBps";

// A few rounds are enough, since the times are not tested.
Words bench(const Words& more) {
  Words result = {"bench", "--iterations", "2",   "--warmup", "1",  "--batch", "2", "--min-bytes",
                  "4",     "--max-bytes",  "64K", "--factor", "128"};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

TEST(LauncherBench, EverythingByItself) {
  for (const char* ranks : {"1", "2", "3", "8"}) {
    test::ScratchFolder folder;
    const Ended result = tutti(bench({"all", "-n", ranks, "--csv", folder / "out.csv"}));
    EXPECT_EQ(result.status, 0) << ranks << result.out << result.err;
    const auto rows = lines_of(read_file(folder / "out.csv"));
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows[0], csv_header);
    // There are rows for 11 operations in sizes 4, 512 and 64K, and one row for a barrier. With
    // two ranks, there are also rows for pingpong in these sizes.
    EXPECT_EQ(rows.size(), 1u + 3 * 11 + 1 + (std::string(ranks) == "2" ? 3 : 0));
    const std::string figure = "[0-9]+[.][0-9]+";
    const std::string row = std::string("tutti,[a-z_]+,[0-9]+,") + ranks + "(," + figure + "){4}";
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_THAT(rows[i], testing::MatchesRegex(row));
  }
}

TEST(LauncherBench, UnderRun) {
  test::ScratchFolder folder;
  Words words = {"run", "-n", "4", "--", TUTTI_BIN_DIR "/tutti"};
  for (const std::string& word : bench({"all_reduce", "--transport", "tcp", "--csv", folder / "out.csv"})) {
    words.push_back(word);
  }
  const Ended result = tutti(words);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("4 ranks, transport tcp"));
  EXPECT_EQ(count(result.out, "# all_reduce\n"), 1);
  EXPECT_THAT(read_file(folder / "out.csv"), HasSubstr("\ntutti-tcp,all_reduce,65536,4,"));
}

TEST(LauncherBench, TypesAndOperations) {
  for (const char* type : {"int8", "int64", "bfloat16", "float8_e5m2", "float64"}) {
    for (const char* op : {"sum", "product", "max", "avg"}) {
      const Ended result = tutti(bench({"all_reduce", "scan", "-n", "3", "--type", type, "--op", op}));
      EXPECT_EQ(result.status, 0) << type << " " << op << result.out << result.err;
    }
  }
}

TEST(LauncherBench, AlgorithmByName) {
  for (const char* algorithm : {"ring", "recursive_doubling"}) {
    const Ended result = tutti(bench({"all_reduce", "-n", "3", "--algorithm", algorithm}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(std::string("algorithm ") + algorithm));
  }
  const Ended unknown = tutti(bench({"all_reduce", "-n", "3", "--algorithm", "magic"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("it has "));
}

TEST(LauncherBench, FileThatCannotBeWritten) {
  const Ended result = tutti(bench({"all_reduce", "-n", "2", "--csv", "/no/such/out.csv"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write /no/such/out.csv"));
}

TEST(LauncherBench, MoreThanTheMachineHas) {
  for (const char* bytes : {"1T", "4000T"}) {
    const Ended result =
        tutti({"bench", "all_reduce", "-n", "2", "--min-bytes", bytes, "--max-bytes", bytes});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr("each rank needs two buffers of "));
  }
}

TEST(LauncherInfo, SaysWhatThereIs) {
  const Ended result = tutti({"info"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"tutti ", "reduce kernels: ", "tcp (", "can run", "lo: 127.0.0.1", "would be used:", "no launcher"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(LauncherInfo, SaysWhatTheEnvironmentLacks) {
  const Ended incomplete = tutti({"info"}, "", {"RANK=3", "TUTTI_RNAK=unheard-of"});
  EXPECT_EQ(incomplete.status, 0) << incomplete.err;
  EXPECT_THAT(incomplete.out, HasSubstr("RANK=3"));
  EXPECT_THAT(incomplete.out, HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(incomplete.out, HasSubstr("the nearest name is TUTTI_RANK"));
  EXPECT_THAT(incomplete.out, Not(HasSubstr("unheard-of")));
  const Ended launched =
      tutti({"run", "-n", "2", "sh", "-c", "[ $RANK = 0 ] || exec " TUTTI_BIN_DIR "/tutti info"});
  EXPECT_EQ(launched.status, 0) << launched.err;
  EXPECT_THAT(launched.out, HasSubstr("rank 1 of 2 by "));
  const Ended wrong = tutti({"info"}, "", {"TUTTI_TIMEOUT=soon"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("TUTTI_TIMEOUT"));
}

TEST(LauncherInfo, EveryVariable) {
  const Ended text = tutti({"info", "--env"}, "", {"TUTTI_TIMEOUT=7s"});
  const Ended markdown = tutti({"info", "--env", "--markdown"});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(markdown.status, 0);
  for (const Config::Variable& variable : Config::variables()) {
    EXPECT_THAT(text.out, HasSubstr(std::string(variable.name)));
    EXPECT_THAT(markdown.out, HasSubstr("| `" + std::string(variable.name) + "` |"));
  }
  EXPECT_THAT(text.out, testing::ContainsRegex("TUTTI_TIMEOUT +7s +environment"));
  EXPECT_EQ(tutti({"info", "--markdown"}).status, 2);
}

TEST(LauncherExplain, ChoiceCandidatesAndSteps) {
  const Ended result =
      tutti({"explain", "all_reduce", "--ranks", "8", "--transport", "tcp", "--bytes", "1M", "--rank", "3"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"all_reduce of 1M (262144 float32) on 8 ranks", "chosen: ", "the cheapest by the model", "  * ",
        "recursive_doubling", "lower bound at 8 ranks: ", "steps of rank 3: ", "  0 send to "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(LauncherExplain, EveryCollective) {
  for (const char* name : {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                           "gather", "scatter", "scan", "exscan", "barrier"}) {
    for (const char* ranks : {"1", "2", "3", "7", "8", "16"}) {
      const Ended result = tutti({"explain", name, "--ranks", ranks, "--transport", "tcp", "--bytes", "4K",
                                  "--simulate", "5", "--all-steps"});
      EXPECT_EQ(result.status, 0) << name << result.err;
      EXPECT_THAT(result.out, HasSubstr("chosen: "));
      EXPECT_THAT(result.out, HasSubstr("simulated on 5 ranks: "));
    }
  }
}

TEST(LauncherExplain, SeveralHosts) {
  const Ended result = tutti({"explain", "all_reduce", "--ranks", "8", "--hosts", "2", "--bytes", "64M",
                              "--far-alpha", "100", "--far-beta", "1", "--simulate", "8"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"on 8 ranks of 2 hosts",
        "costs: shipped, for shm, which ranks of a host use by default, changed by options",
        "  within a host: alpha ", "  between hosts: alpha 100.00 us", "chosen: two_level",
        "simulated on 8 ranks: two_level"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(LauncherExplain, MeasuresThisMachine) {
  const Ended result = tutti({"explain", "all_reduce", "--ranks", "2", "--measure", "--transport", "tcp"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("costs: measured here over tcp"));
}

TEST(LauncherExplain, TheRanksOfAJobMeasureItsHosts) {
  const std::string program = TUTTI_BIN_DIR "/tutti";
  const Ended result = tutti({"run", "-n", "3", "--", program, "explain", "--job", "all_reduce"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("all_reduce of 1M (262144 float32) on 3 ranks\n"));
  EXPECT_THAT(result.out, HasSubstr("costs: measured by the ranks of this job"));

  const test::ScratchFolder folder;
  const std::string file = folder / "results.csv";
  std::ofstream(file) << "peer,collective,bytes,ranks,lat_us_median\ntutti,all_reduce,8,3,20.0\n";
  const Words validate = {"--", program, "explain", "--job", "--validate", file};
  Words words = {"run", "-n", "3"};
  words.insert(words.end(), validate.begin(), validate.end());
  EXPECT_THAT(tutti(words).out, HasSubstr("\nall_reduce,8,3,20,"));
  words[2] = "2";
  const Ended other = tutti(words);
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("has times of 3 ranks; this job has 2"));
}

TEST(LauncherExplain, ValidatesWhatWasMeasured) {
  const test::ScratchFolder folder;
  const std::string file = folder / "results.csv";
  ASSERT_EQ(tutti({"bench", "all_reduce", "barrier", "-n", "2", "--transport", "tcp", "--max-bytes", "1K",
                   "--budget-ms", "5", "--csv", file})
                .status,
            0);
  const Ended result = tutti({"explain", "--validate", file});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("collective,bytes,ranks,measured_us,predicted_us,ratio,algorithm"));
  EXPECT_THAT(result.out, HasSubstr("all_reduce,8,2,"));
  EXPECT_THAT(result.out, HasSubstr("# 2 ranks, up to 1 KiB: "));
  EXPECT_EQ(tutti({"explain", "--validate", folder / "missing"}).status, 1);
}

TEST(LauncherExplain, LongSchedulesAreCutUnlessAskedFor) {
  const Words words = {"explain", "all_reduce", "--ranks", "64", "--algorithm", "ring"};
  const Ended cut = tutti(words);
  EXPECT_THAT(cut.out, HasSubstr("more (--all-steps)"));
  Words all = words;
  all.push_back("--all-steps");
  EXPECT_GT(lines_of(tutti(all).out).size(), 2u * 63 * 2);
}

TEST(LauncherExplain, SimulatesManyRanks) {
  const Ended result = tutti({"explain", "all_reduce", "--ranks", "8", "--transport", "tcp", "--bytes", "64K",
                              "--simulate", "4096"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("simulated on 4096 ranks: "));
  EXPECT_THAT(result.out, HasSubstr("lower bound at 4096 ranks: "));
  const Ended too_much = tutti({"explain", "all_reduce", "--ranks", "8", "--bytes", "1M", "--simulate",
                                "4096", "--algorithm", "ring"});
  EXPECT_EQ(too_much.status, 1);
  EXPECT_THAT(too_much.err, HasSubstr("too many to simulate"));
}

// Windows are rounded to whole cache lines.
TEST(LauncherExplain, RoundsWindowsAsTheLibraryDoes) {
  const Words question = {"explain", "all_reduce", "--ranks", "3", "--transport", "shm", "--bytes", "1M"};
  const Ended odd = tutti(question, "", {"TUTTI_SHM_WINDOW=65537"});
  EXPECT_EQ(odd.status, 0) << odd.err;
  EXPECT_EQ(odd.out, tutti(question, "", {"TUTTI_SHM_WINDOW=65600"}).out);
  EXPECT_NE(odd.out, tutti(question, "", {"TUTTI_SHM_WINDOW=131072"}).out);
}

TEST(LauncherExplain, OverrideAndModel) {
  const Ended overridden = tutti({"explain", "all_reduce", "--ranks", "5", "--transport", "tcp"}, "",
                                 {"TUTTI_ALGORITHM=all_reduce:ring"});
  EXPECT_THAT(overridden.out, HasSubstr("chosen: ring"));
  EXPECT_THAT(overridden.out, HasSubstr("asked for by TUTTI_ALGORITHM"));
  // If messages cost nothing, the algorithm with the fewest bytes wins. If bytes cost nothing, the
  // algorithm with the fewest messages wins.
  const Words question = {"explain", "all_reduce", "--ranks", "8",      "--transport",
                          "tcp",     "--bytes",    "64K",     "--alpha"};
  Words bytes_cost = question;
  bytes_cost.insert(bytes_cost.end(), {"0.001", "--beta", "1"});
  EXPECT_THAT(tutti(bytes_cost).out, Not(HasSubstr("chosen: recursive_doubling")));
  Words messages_cost = question;
  messages_cost.insert(messages_cost.end(), {"1000", "--beta", "0.001", "--gamma", "0"});
  EXPECT_THAT(tutti(messages_cost).out, HasSubstr("chosen: recursive_doubling"));
}

// By default, `explain` shows the algorithms for ranks on one host.
TEST(LauncherExplain, SharesMemoryOnOneHost) {
  const Ended result = tutti({"explain", "all_reduce", "--ranks", "4"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("costs: shipped, for shm, which ranks of a host use by default\n"));
  EXPECT_THAT(result.out, HasSubstr("chosen: shared_"));
  EXPECT_THAT(result.out, HasSubstr("combining and copying"));
  const Ended told = tutti({"explain", "all_reduce", "--ranks", "4"}, "", {"TUTTI_TRANSPORTS=tcp"});
  EXPECT_THAT(told.out, HasSubstr("costs: shipped, for tcp, which"));
  EXPECT_THAT(told.out, Not(HasSubstr("chosen: shared_")));
  const Ended simulated = tutti({"explain", "all_reduce", "--ranks", "4", "--simulate", "4"});
  EXPECT_EQ(simulated.status, 1);
  EXPECT_THAT(simulated.err, HasSubstr("sends no messages, which are what --simulate runs"));
}

TEST(LauncherExplain, SaysWhatIsMoved) {
  EXPECT_THAT(tutti({"explain", "barrier", "--ranks", "4"}).out, HasSubstr("barrier on 4 ranks\n"));
  EXPECT_THAT(tutti({"explain", "broadcast", "--ranks", "1"}).out,
              HasSubstr("broadcast of 1M (262144 float32) on 1 rank\n"));
  // The size is rounded down, so that it holds three equal blocks of whole elements.
  EXPECT_THAT(tutti({"explain", "all_gather", "--ranks", "3", "--bytes", "4K"}).out,
              HasSubstr("all_gather of 4092 (341 float32 a block) on 3 ranks\n"));
}

TEST(LauncherExplain, ANameThatIsNearlyRightIsTheFirstComplaint) {
  const Ended result = tutti({"explain", "all_reduc"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err,
              HasSubstr("no such collective to explain: all_reduc (did you mean all_reduce?); there"));
  EXPECT_THAT(tutti({"explain", "all_reduce"}).err, HasSubstr("--ranks is required"));
  EXPECT_THAT(tutti({"explain", "reduce", "--ranks", "2", "--type", "flaot32"}).err,
              HasSubstr("no such type: flaot32 (did you mean float32?); there"));
  EXPECT_THAT(tutti({"bench", "brodcast"}).err, HasSubstr("brodcast (did you mean broadcast?); there"));
  EXPECT_THAT(tutti({"exlpain"}).err, HasSubstr("unknown command `exlpain` (did you mean explain?)\n"));
}

TEST(LauncherExplain, UnknownNamesGetTheKnownOnes) {
  const auto error = [](Words words) {
    words.insert(words.begin(), "explain");
    words.insert(words.end(), {"--ranks", "2"});
    return tutti(words).err;
  };
  EXPECT_THAT(error({"all"}),
              HasSubstr("no such collective to explain: all; there are: all_reduce, reduce, "
                        "broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, scan, "
                        "exscan, barrier\n"));
  EXPECT_THAT(error({"all_reduce", "--type", "float"}), HasSubstr("no such type: float; there are: int8, "));
  EXPECT_THAT(
      error({"all_reduce", "--op", "add"}),
      HasSubstr(
          "no such operation: add; there are: sum, product, min, max, avg, bit_and, bit_or, bit_xor\n"));
  EXPECT_THAT(error({"all_reduce", "--algorithm", "magic"}), HasSubstr("has no algorithm magic; it has "));
  EXPECT_THAT(error({"all_reduce", "--transport", "magic"}), HasSubstr("tcp"));
  EXPECT_THAT(error({"all_reduce", "--bytes", "1001"}),
              HasSubstr("--bytes 1001 is not a whole number of float32s, of 4 bytes each"));
}

TEST(LauncherExplain, Mistakes) {
  const Words mistakes[] = {{"explain", "all_reduce"},
                            {"explain", "nothing", "--ranks", "2"},
                            {"explain", "all_reduce", "--ranks", "0"},
                            {"explain", "all_reduce", "--ranks", "2", "--rank", "2"},
                            {"explain", "all_reduce", "--ranks", "2", "--bytes", "many"},
                            {"explain", "all_reduce", "--ranks", "2", "--algorithm", "magic"},
                            {"explain", "all_reduce", "--ranks", "2", "--op", "bit_or"},
                            {"explain", "all_reduce", "--ranks", "2", "--bytes", "1001"},
                            {"explain", "broadcast", "--ranks", "2", "--root", "2"}};
  for (const Words& words : mistakes) {
    const Ended result = tutti(words);
    EXPECT_EQ(result.status, 2) << testing::PrintToString(words);
    EXPECT_NE(result.err, "");
  }
}

}  // namespace
}  // namespace tutti::launcher_test
