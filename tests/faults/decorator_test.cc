// Runs collectives over a transport that disturbs messages at chosen points: it drops, delays or truncates
// them, or closes connections. Every rank must end with an error or with the right data.
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"
#include "tests/support/faulty_transport.h"

namespace tutti::test {
namespace {

using Kind = TransportFault::Kind;

constexpr int culprit = 1;

// An `Outcome` says how one rank ended, and how many collectives it completed.
struct Outcome {
  Status status;
  int completed = 0;
};

std::vector<CollectiveCase> cases() {
  std::vector<CollectiveCase> all;
  for (int kind = 0; kind < collective_kind_count; ++kind) {
    CollectiveCase test;
    test.kind = static_cast<CollectiveKind>(kind);
    if (test.kind == CollectiveKind::send || test.kind == CollectiveKind::recv) continue;
    test.type = DataType::int32;
    test.count = kind % 2 == 0 ? 100 : 5'000;  // one message, or many fragments
    test.timeout = {};
    all.push_back(test);
  }
  return all;
}

class Decorator : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  // Runs all collectives, one after the other, until one fails. The transport of one rank has `fault`.
  std::vector<Outcome> run(const TransportFault& fault, std::chrono::milliseconds timeout) {
    ClusterOptions options;
    options.transport = std::get<0>(GetParam());
    options.limits = {.eager = 1024, .credit = 4096, .fragment = 1024};
    options.timeout = timeout;
    options.decorate = [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
      if (rank != culprit) return inner;
      return std::make_unique<FaultyTransport>(std::move(inner), fault);
    };
    const int size = std::get<1>(GetParam());
    std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
    Cluster ranks(size, options);
    ranks.run([&](Communicator& comm) {
      Outcome& own = outcomes[static_cast<std::size_t>(comm.rank())];
      try {
        for (const CollectiveCase& test : cases()) {
          const std::string problem = attempt_case(comm, test);
          ASSERT_EQ(problem, "") << "at " << fault.at;
          ++own.completed;
        }
      } catch (const Error& error) {
        own.status = error.status();
      }
    });
    return outcomes;
  }
  // `short_time` is the timeout for operations that cannot complete. `long_time` is longer than any run
  // takes.
  static constexpr std::chrono::milliseconds short_time{400};
  static constexpr std::chrono::milliseconds long_time{60'000};
  // Returns the numbers of the messages to disturb. Some of these messages are sent early, and
  // others late. No rank sends more than nine messages in a world of two ranks.
  static std::vector<std::uint64_t> points() {
    return std::get<1>(GetParam()) == 2 ? std::vector<std::uint64_t>{0, 1, 2, 5, 7}
                                        : std::vector<std::uint64_t>{0, 1, 2, 5, 11, 17};
  }
};

TEST_P(Decorator, LateMessagesDoNoHarm) {
  for (const std::uint64_t at : points()) {
    for (const Outcome& outcome : run({.kind = Kind::delay, .at = at}, long_time))
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }
}

// Only a timeout reveals the loss. These ranks have no control connections, so they cannot agree on
// which rank is late. Instead, each rank's error names the rank for which it was waiting.
TEST_P(Decorator, ALostMessageIsATimeout) {
  for (const std::uint64_t at : {0, 3}) {
    for (const Outcome& outcome :
         run({.kind = Kind::drop, .at = static_cast<std::uint64_t>(at)}, short_time)) {
      EXPECT_EQ(outcome.status.code(), Code::timeout) << outcome.status.to_string();
      EXPECT_THAT(outcome.status.message(), testing::HasSubstr("rank ")) << outcome.status.to_string();
    }
  }
}

TEST_P(Decorator, ATruncatedMessageIsAMismatchWithItsSender) {
  for (const std::uint64_t at : points()) {
    const auto outcomes = run({.kind = Kind::truncate, .at = at}, long_time);
    bool named = false;
    for (const Outcome& outcome : outcomes) {
      const Code code = outcome.status.code();
      EXPECT_TRUE(code == Code::mismatch || code == Code::aborted || code == Code::ok)
          << outcome.status.to_string();
      named |= code == Code::mismatch && outcome.status.message().find("rank 1 (") != std::string::npos;
    }
    EXPECT_TRUE(named) << "at " << at << ": " << outcomes[0].status.to_string();
  }
}

TEST_P(Decorator, ABrokenConnectionIsALostPeer) {
  std::vector<TransportFault> faults;
  for (const std::uint64_t at : points()) {
    faults.push_back({.kind = Kind::close, .at = at});
    faults.push_back({.kind = Kind::cut, .at = 1 + at * 3});
  }
  for (const TransportFault& fault : faults) {
    for (const Outcome& outcome : run(fault, long_time)) {
      const std::string text = outcome.status.to_string();
      // The other ranks may have declared this rank lost. This rank then reports that it stays excluded.
      EXPECT_THAT(text,
                  testing::AnyOf(testing::StartsWith("peer_lost: "), testing::HasSubstr("stays excluded")))
          << fault.at;
      EXPECT_THAT(text, testing::HasSubstr("(host test, pid 100"));
      EXPECT_LT(outcome.completed, static_cast<int>(cases().size()));
    }
  }
}

TEST_P(Decorator, AConnectionThatCannotBeMadeIsSaid) {
  const auto outcomes = run({.kind = Kind::refuse}, std::chrono::seconds(5));
  EXPECT_EQ(outcomes[culprit].status.code(), Code::unreachable) << outcomes[culprit].status.to_string();
  for (const Outcome& outcome : outcomes) EXPECT_FALSE(outcome.status.ok());
}

INSTANTIATE_TEST_SUITE_P(, Decorator,
                         testing::Combine(testing::Values("inproc", "tcp"), testing::Values(2, 3, 4)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + std::to_string(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace tutti::test
