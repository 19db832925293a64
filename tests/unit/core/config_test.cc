#include <chrono>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/config.h>

namespace tutti {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Config config_of(const std::map<std::string, std::string>& values) {
  Result<Config> result = Config::from_values(values);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return *std::move(result);
}

TEST(ConfigValues, Durations) {
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("50us"), 50us);
  EXPECT_EQ(parse_duration("7"), 7s);
  EXPECT_EQ(parse_duration("0"), 0s);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0.001"), 1ms);
  for (const char* bad : {"", "s", "-1s", "10 s", "1.s", ".5s", "10d", "1e3", "1.2.3s",
                          "99999999999999999999", "300000h0", "9223372037s", "+5"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(ConfigValues, Sizes) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("1M"), 1u << 20);
  EXPECT_EQ(parse_size("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("3MB"), 3u << 20);
  EXPECT_EQ(parse_size("1.5K"), 1536u);
  EXPECT_EQ(parse_size("12B"), 12u);
  for (const char* bad : {"", "K", "-1", "1 K", "1X", "1KK", "0x10", "99999999T", "iB"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(ConfigValues, IntegersPortsAndLists) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_FALSE(parse_integer("12x"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_EQ(parse_port_range("20000-21000"), (PortRange{20000, 21000}));
  EXPECT_EQ(parse_port_range("80"), (PortRange{80, 80}));
  for (const char* bad : {"", "0", "5-4", "1-70000", "a-b", "1-2-3", "-5"})
    EXPECT_FALSE(parse_port_range(bad)) << bad;
  EXPECT_THAT(parse_list(" tcp, shm ,,verbs"), ElementsAre("tcp", "shm", "verbs"));
  EXPECT_THAT(parse_list(""), IsEmpty());
}

TEST(ConfigValues, AlgorithmChoicesAreSortedAndUnique) {
  const auto choices = parse_algorithm_choices("broadcast:binomial, all_reduce:ring");
  ASSERT_TRUE(choices);
  EXPECT_EQ(format_algorithm_choices(*choices), "all_reduce:ring,broadcast:binomial");
  for (const char* bad : {"ring", "all_reduce:", "nonsense:ring", "all_reduce:ring,all_reduce:ring"}) {
    EXPECT_FALSE(parse_algorithm_choices(bad)) << bad;
  }
}

TEST(ConfigValues, FormattersAreReadBack) {
  for (const std::chrono::nanoseconds duration :
       std::initializer_list<std::chrono::nanoseconds>{0ns, 1ns, 999ns, 50us, 1500ms, 90s, 5min, 25h}) {
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
  EXPECT_EQ(format_duration(300s), "5m");
  for (const std::uint64_t size : {0, 1, 1023, 1024, 1536, 131072, 1 << 30}) {
    EXPECT_EQ(parse_size(format_size(size)), size) << format_size(size);
  }
  EXPECT_EQ(format_size(131072), "128K");
}

TEST(Config, StartsWithTheDefaultsOfTheTable) {
  const Config config;
  EXPECT_FALSE(config.rank);
  EXPECT_FALSE(config.port_range);
  EXPECT_EQ(config.timeout, 5min);
  EXPECT_EQ(config.init_timeout, 2min);
  EXPECT_EQ(config.eager_limit, 128u << 10);
  EXPECT_EQ(config.eager_credit, 1u << 20);
  EXPECT_EQ(config.fragment, 128u << 10);
  EXPECT_EQ(config.spin, 50us);
  EXPECT_EQ(config.shm_window, 1u << 20);
  EXPECT_EQ(config.shm_ring, 128u << 10);
  EXPECT_EQ(config.log_level, log::Level::warn);
  // The parser of each variable must accept the variable's default. The parsed value must print
  // exactly as in the table.
  for (const Config::Setting& setting : config.settings()) {
    EXPECT_EQ(setting.value, setting.variable->default_value) << setting.variable->name;
    EXPECT_FALSE(setting.from_environment);
  }
}

TEST(Config, ReadsEveryType) {
  const Config config = config_of({{"TUTTI_RANK", "3"},
                                   {"TUTTI_WORLD_SIZE", "8"},
                                   {"TUTTI_INIT_METHOD", "tcp://[::1]:29500"},
                                   {"TUTTI_TIMEOUT", "500ms"},
                                   {"TUTTI_TRANSPORTS", "shm,tcp"},
                                   {"TUTTI_PORT_RANGE", "20000-21000"},
                                   {"TUTTI_LOG_LEVEL", "debug"},
                                   {"TUTTI_ALGORITHM", "all_reduce:ring"},
                                   {"TUTTI_FRAGMENT", "64K"}});
  EXPECT_EQ(config.rank, 3);
  EXPECT_EQ(config.world_size, 8);
  EXPECT_EQ(config.init_method, "tcp://[::1]:29500");
  EXPECT_EQ(config.timeout, 500ms);
  EXPECT_THAT(config.transports, ElementsAre("shm", "tcp"));
  EXPECT_EQ(config.port_range, (PortRange{20000, 21000}));
  EXPECT_EQ(config.log_level, log::Level::debug);
  ASSERT_EQ(config.algorithm.size(), 1u);
  EXPECT_EQ(config.algorithm[0].algorithm, "ring");
  EXPECT_EQ(config.fragment, 65536u);
  EXPECT_THAT(config.warnings(), IsEmpty());
}

TEST(Config, ABadValueIsNamedWithWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"TUTTI_RANK", "-1"},          {"TUTTI_WORLD_SIZE", "0"},   {"TUTTI_LOCAL_RANK", "two"},
      {"TUTTI_TIMEOUT", "soon"},     {"TUTTI_FRAGMENT", "1M"},    {"TUTTI_EAGER_CREDIT", "1"},
      {"TUTTI_LOG_LEVEL", "loud"},   {"TUTTI_PORT_RANGE", "9-8"}, {"TUTTI_ALGORITHM", "magic"},
      {"TUTTI_EAGER_LIMIT", "lots"}, {"TUTTI_WORLD_SIZE", "1e3"}, {"TUTTI_SPIN", "-5us"}};
  for (const auto& [name, value] : bad) {
    const Result<Config> result = Config::from_values({{name, value}});
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    EXPECT_THAT(result.status().message(), HasSubstr(name + " is '" + value + "'; expected "));
  }
  EXPECT_THAT(Config::from_values({{"TUTTI_RANK", "x"}}).status().message(),
              HasSubstr("expected an integer from 0 to 1048575"));
  EXPECT_THAT(Config::from_values({{"TUTTI_FRAGMENT", "1M"}}).status().message(),
              HasSubstr("a size from 1K to 128K"));
  EXPECT_THAT(Config::from_values({{"TUTTI_TIMEOUT", "0"}}).status().message(), HasSubstr("longer than 0"));
  EXPECT_EQ(config_of({{"TUTTI_SPIN", "0"}}).spin, 0ns);
}

TEST(Config, EmptyCountsAsNotSet) {
  const Config config = config_of({{"TUTTI_RANK", ""}, {"TUTTI_TIMEOUT", ""}});
  EXPECT_FALSE(config.rank);
  EXPECT_EQ(config.timeout, 5min);
}

TEST(Config, AnEmptyTokenIsAnErrorAndNotOpen) {
  for (const char* name : {"TUTTI_TOKEN", "TUTTI_TOKEN_FILE"}) {
    for (const char* blank : {"", " ", "\r", " \t\n"}) {
      const Status status = Config::from_values({{name, blank}}).status();
      EXPECT_EQ(status.code(), Code::invalid_argument) << name;
      EXPECT_THAT(status.message(), HasSubstr(std::string(name) + " is set but empty"));
    }
  }
}

TEST(Config, WindowsLinesAndDockersQuotesAreNamed) {
  for (const Config::Variable& variable : Config::variables()) {
    const std::string name(variable.name);
    const std::string windows = Config::from_values({{name, "3\r"}}).status().message();
    EXPECT_THAT(windows, AllOf(HasSubstr(name), HasSubstr("ends with a carriage return")));
    const std::string quoted = Config::from_values({{name, "\"3\""}}).status().message();
    EXPECT_THAT(quoted, AllOf(HasSubstr(name), HasSubstr("docker run --env-file")));
    if (variable.type_name() != "secret") {
      EXPECT_THAT(windows, HasSubstr("'3\\r'"));
      EXPECT_THAT(quoted, HasSubstr("'\"3\"'"));
    }
  }
}

TEST(Config, WarnsOfMisspeltNamesWithTheNearest) {
  const Config config = config_of({{"TUTTI_TIMOUT", "3s"}, {"TUTTI_WORDL_SIZE", "2"}, {"OTHER", "x"}});
  EXPECT_THAT(config.warnings(),
              ElementsAre(AllOf(HasSubstr("TUTTI_TIMOUT is not"), HasSubstr("nearest name is TUTTI_TIMEOUT")),
                          AllOf(HasSubstr("TUTTI_WORDL_SIZE is not"),
                                HasSubstr("nearest name is TUTTI_WORLD_SIZE"))));
}

TEST(Config, KnowsWhereValuesCameFrom) {
  const Config config = config_of({{"TUTTI_JOB_ID", "seven"}, {"TUTTI_RANK", "3"}});
  std::size_t from_environment = 0;
  for (const Config::Setting& setting : config.settings())
    from_environment += setting.from_environment ? 1 : 0;
  EXPECT_EQ(from_environment, 2u);
  const std::string text = describe(config);
  EXPECT_THAT(text, HasSubstr("seven"));
  for (const Config::Variable& variable : Config::variables()) {
    EXPECT_THAT(text, HasSubstr(std::string(variable.name)));
    EXPECT_THAT(variables_markdown(), HasSubstr("| `" + std::string(variable.name) + "` |"));
  }
}

// docs/variables.md holds the table. `./dev docs` writes this page.
TEST(Config, TheDocumentationHoldsTheTable) {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/variables.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr(variables_markdown()));
}

TEST(Config, WireDigestHoldsExactlyWhatShapesTheWire) {
  const std::string base = Config().wire_digest();
  EXPECT_THAT(base, HasSubstr("TUTTI_SHM_WINDOW=1M;"));
  EXPECT_EQ(config_of({{"TUTTI_SHM_WINDOW", "1048576"}}).wire_digest(), base);
  EXPECT_EQ(config_of({{"TUTTI_EAGER_LIMIT", "1K"}, {"TUTTI_FRAGMENT", "4K"}}).wire_digest(), base);
  EXPECT_EQ(config_of({{"TUTTI_TIMEOUT", "1s"}, {"TUTTI_RANK", "1"}}).wire_digest(), base);
  EXPECT_NE(config_of({{"TUTTI_SHM_WINDOW", "1K"}}).wire_digest(), base);
  EXPECT_NE(config_of({{"TUTTI_ALGORITHM", "all_reduce:ring"}}).wire_digest(), base);
}

TEST(Config, TableNamesAreUniqueAndOurs) {
  std::set<std::string_view> names;
  for (const Config::Variable& variable : Config::variables()) {
    EXPECT_TRUE(variable.name.starts_with("TUTTI_")) << variable.name;
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_TRUE(variable.meaning.ends_with(".")) << variable.name;
    EXPECT_EQ(variable.meaning.find('|'), std::string_view::npos) << variable.name;
  }
}

TEST(Config, ReadsTheEnvironment) {
  ASSERT_EQ(setenv("TUTTI_JOB_ID", "from-the-environment", 1), 0);
  const Result<Config> config = Config::from_environment();
  unsetenv("TUTTI_JOB_ID");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->job_id, "from-the-environment");
}

}  // namespace
}  // namespace tutti
