// Tests attackers in the path between ranks that use TLS. The attackers must never learn the data
// that a rank sends inside TLS.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include "tests/faults/job.h"
#include "tests/support/certificates.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tls_attacker.h"

namespace tutti::test {
namespace {

using security::Service;
using ::testing::HasSubstr;
using ::testing::Not;
using Role = TlsAttacker::Role;

constexpr const char* listened_on = "127.0.0.2";
constexpr const char* advertised = "127.0.0.3";
constexpr int ports_each = 4;
constexpr const char* token = "4d7c1f0a93b25e68";

// `TlsAttacks` runs two ranks. All connections between the ranks, and from rank 1 to the store, go
// through the attacker.
class TlsAttacks : public ::testing::TestWithParam<Service> {
 protected:
  bool make_certificates() const {
    return make_authority(folder_.path(), "ca") && make_authority(folder_.path(), "self-made") &&
           make_certificate(folder_.path(), "ca", "member") &&
           make_certificate(folder_.path(), "ca", "relay");
  }
  void attack(Role role, const std::string& certificate, Process::Environment variables) {
    const std::uint16_t first_port = unused_port();
    TlsAttacker::Options options;
    options.role = role;
    options.service = GetParam();
    options.from = advertised;
    options.to = listened_on;
    options.ports.resize(2 * ports_each + 1);
    std::iota(options.ports.begin(), options.ports.end(), first_port);
    options.certificate = folder_ / (certificate + ".pem");
    options.key = folder_ / (certificate + ".key");
    attacker_.emplace(options);
    ASSERT_EQ(attacker_->problem(), "");
    for (const auto& [name, value] : Process::Environment{{"TUTTI_TLS", "1"},
                                                          {"TUTTI_TOKEN", token},
                                                          {"TUTTI_BIND_ADDRESS", listened_on},
                                                          {"TUTTI_ADVERTISE_ADDRESS", advertised},
                                                          {"TUTTI_INIT_TIMEOUT", "12s"}}) {
      variables[name] = value;
    }
    job_.emplace(2, std::move(variables), 0);
    for (int rank = 0; rank < 2; ++rank) {
      const int first = first_port + 1 + rank * ports_each;
      const std::string where = rank == 0 ? listened_on : advertised;
      job_->start(rank,
                  {{"TUTTI_PORT_RANGE", std::to_string(first) + "-" + std::to_string(first + ports_each - 1)},
                   {"TUTTI_INIT_METHOD", "tcp://" + where + ":" + std::to_string(first_port)}});
    }
  }
  // The rank that connected to the attacker reports that its peer is not authenticated. In an
  // attack on the store, rank 1 connects to the attacker.
  void expect_that_nothing_was_heard() {
    std::string errors;
    for (const auto& rank : job_->ranks) {
      EXPECT_EQ(rank->wait(), 1) << rank->report();
      errors += rank->err();
    }
    EXPECT_GT(attacker_->attacks(), 0);
    EXPECT_THAT(errors, HasSubstr("unauthenticated")) << errors;
    // These are the first bytes of the three protocols that are attacked: the store's, tcp's and the control
    // plane's.
    for (const char* greeting : {"TUTTIST", "tutti?", "tuttic"}) {
      EXPECT_THAT(attacker_->heard(), Not(HasSubstr(greeting)));
    }
  }

  const ScratchFolder folder_;
  std::optional<TlsAttacker> attacker_;
  std::optional<Job> job_;
};

TEST_P(TlsAttacks, BySelfMadeCertificatesHearNothing) {
  if (!make_certificates()) GTEST_SKIP() << "the openssl command makes no certificates here";
  attack(Role::impostor, "self-made", {});
  expect_that_nothing_was_heard();
}

TEST_P(TlsAttacks, ByARelayWithACertificateHearNothing) {
  if (!make_certificates()) GTEST_SKIP() << "the openssl command makes no certificates here";
  attack(Role::relay, "relay",
         {{"TUTTI_TLS_CA", folder_ / "ca.pem"},
          {"TUTTI_TLS_CERT", folder_ / "member.pem"},
          {"TUTTI_TLS_KEY", folder_ / "member.key"}});
  expect_that_nothing_was_heard();
}

TEST(TlsStrangers, CostLittleBeforeTheySpeakTls) {
  Job job(2, {{"TUTTI_TLS", "1"}, {"TUTTI_TOKEN", token}});
  ASSERT_TRUE(job.are_ready()) << job[0].report();
  const std::size_t before = memory_of(job[0].pid());
  const auto grown = [&] {
    const std::size_t now = memory_of(job[0].pid());
    return now - std::min(before, now);
  };
  security::Settings settings;
  settings.token = Secret("a guess");
  settings.tls = true;
  const auto credentials = security::Credentials::create(settings).take();
  // These strangers ask for the data service. So rank 0 continues their handshake at its data port,
  // and refuses them at its other ports.
  constexpr int most = 200;
  std::vector<LoopbackSocket> strangers;
  for (const std::uint16_t port : listening_ports(job[0].pid())) {
    for (int i = 0; i < most; ++i) {
      strangers.emplace_back(port);
      const int descriptor = strangers.back().descriptor();
      security::Guard::connecting(credentials, {Service::data, 1, 0},
                                  Deadline::after(std::chrono::minutes(1)))
          .advance(descriptor);
      pollfd answered{descriptor, POLLIN, 0};
      EXPECT_EQ(poll(&answered, 1, 30'000), 1);
    }
  }
  const std::size_t silent = grown();
  for (LoopbackSocket& stranger : strangers) stranger.say("\x16\x03");
  std::size_t speaking = silent;
  for (int i = 0; i < 100; ++i) {
    speaking = std::max(speaking, grown());
    usleep(2000);
  }
  std::printf("%zu KiB more, %zu KiB once they speak TLS\n", silent / 1024, speaking / 1024);
  EXPECT_LT(silent, most * 10u * 1024u);
  EXPECT_LT(speaking, most * 64u * 1024u);
  job.expect_good_end();
}

INSTANTIATE_TEST_SUITE_P(, TlsAttacks, ::testing::Values(Service::store, Service::data, Service::control),
                         [](const auto& which) {
                           return which.param == Service::store  ? "Store"
                                  : which.param == Service::data ? "Data"
                                                                 : "Control";
                         });

}  // namespace
}  // namespace tutti::test
