// Tests guards that encrypt their connection.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <tutti/log.h>

#include "tests/support/certificates.h"
#include "tests/unit/core/guard_ends.h"

namespace tutti::security {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using State = Guard::State;

constexpr Parties one_to_two{Service::data, 1, 2};
const std::string pattern = "0123456789abcdefghijklmnopqrstuvwxyz";

Settings by_token(const std::string& token) {
  Settings settings;
  settings.token = Secret(token);
  settings.tls = true;
  return settings;
}

Guard connector(const Settings& settings, const Parties& parties = one_to_two) {
  return Guard::connecting(Credentials::create(settings).take(), parties, Deadline::after(seconds(60)));
}
Guard acceptor(const Settings& settings, Service service = Service::data, std::uint32_t self = 2) {
  return Guard::accepting(Credentials::create(settings).take(), service, self, Deadline::after(seconds(60)));
}

// Writes `text` to `from`, in as many pieces as the socket requires. Returns the text that arrives
// at `to`.
std::string carry(Tls& from, Tls& to, const std::string& text) {
  std::string arrived;
  std::size_t written = 0;
  int error = 0;
  while (arrived.size() < text.size() && (error == 0 || error == EAGAIN)) {
    const std::span<const std::byte> all = std::as_bytes(std::span(text)).subspan(written);
    const std::array<std::span<const std::byte>, 2> parts = {all.first(all.size() / 3),
                                                             all.subspan(all.size() / 3)};
    if (!all.empty()) written += from.write(parts, error);
    std::array<std::byte, 5000> some;
    const std::size_t got = to.read(some, error);
    arrived.append(reinterpret_cast<const char*>(some.data()), got);
  }
  return arrived;
}

TEST(Tls, CarriesEverythingUnderKeysOfTheToken) {
  Settings settings = by_token("secret");
  settings.rekey_bytes = 300'000;
  Connection connection;
  Guard connects = connector(settings), accepts = acceptor(settings);
  meet(connection, connects, accepts);
  ASSERT_EQ(connects.advance(connection.left), State::done) << connects.status().to_string();
  ASSERT_EQ(accepts.advance(connection.right), State::done) << accepts.status().to_string();
  EXPECT_EQ(accepts.from(), 1u);
  const auto left = connects.take_tls(), right = accepts.take_tls();
  ASSERT_TRUE(left && right);
  std::string text;
  while (text.size() < 2'000'000) text += pattern + std::to_string(text.size());
  EXPECT_EQ(carry(*left, *right, text), text);
  EXPECT_EQ(carry(*right, *left, text), text);
}

// The launcher forgets an agent's secret after it has accepted the agent, but keeps the connection.
TEST(Tls, OutlivesItsCredentials) {
  Settings settings = by_token("secret");
  settings.rekey_bytes = 1000;
  Connection connection;
  std::unique_ptr<Tls> left, right;
  {
    Guard connects = connector(settings), accepts = acceptor(settings);
    meet(connection, connects, accepts);
    left = connects.take_tls();
    right = accepts.take_tls();
  }
  ASSERT_TRUE(left && right);
  const std::string text(10'000, 'x');
  EXPECT_EQ(carry(*left, *right, text), text);
  EXPECT_EQ(carry(*right, *left, text), text);
}

TEST(Tls, TheWireHoldsNoPlaintext) {
  for (const bool encrypted : {false, true}) {
    Settings settings = by_token("secret");
    settings.tls = encrypted;
    Connection left, right;
    Guard connects = connector(settings), accepts = acceptor(settings);
    Recording recording;
    recording.run(connects, accepts, left, right);
    ASSERT_TRUE(connects.status().ok() && accepts.status().ok());
    const auto tls = connects.take_tls();
    ASSERT_EQ(tls != nullptr, encrypted);
    const auto part = std::as_bytes(std::span(pattern));
    int error = 0;
    if (encrypted) {
      EXPECT_EQ(tls->write({&part, 1}, error), pattern.size());
    } else {
      send_all(left.left, pattern);
    }
    const std::string wire = receive_all(left.right);
    EXPECT_EQ(wire.find(pattern) == wire.npos, encrypted);
    EXPECT_GE(wire.size(), pattern.size());
  }
}

TEST(Tls, WhatWasChangedOnTheWayIsRefused) {
  const Settings settings = by_token("secret");
  Connection left, right;
  Guard connects = connector(settings), accepts = acceptor(settings);
  Recording().run(connects, accepts, left, right);
  const auto from = connects.take_tls(), to = accepts.take_tls();
  ASSERT_TRUE(from && to);
  const auto part = std::as_bytes(std::span(pattern));
  int error = 0;
  ASSERT_EQ(from->write({&part, 1}, error), pattern.size());
  std::string wire = receive_all(left.right);
  wire[wire.size() / 2] ^= 1;
  send_all(right.left, wire);
  std::array<std::byte, 100> some;
  EXPECT_EQ(to->read(some, error), 0u);
  EXPECT_EQ(error, EPROTO);
  EXPECT_NE(to->reason(), "");
}

TEST(Tls, OtherTokensJobsAndModesAreRefusedOnBothSides) {
  Settings other_job = by_token("secret"), plain = by_token("secret");
  other_job.job = "another";
  plain.tls = false;
  struct Case {
    Settings settings;
    const char* why;
  };
  for (const auto& [settings, why] : {Case{by_token("other"), "another token"},
                                      Case{other_job, "another token"}, Case{plain, "does not encrypt"}}) {
    for (const bool turned : {false, true}) {
      Connection connection;
      Guard connects = connector(turned ? settings : by_token("secret"));
      Guard accepts = acceptor(turned ? by_token("secret") : settings);
      meet(connection, connects, accepts);
      for (const Guard* guard : {&connects, &accepts}) {
        EXPECT_EQ(guard->status().code(), Code::unauthenticated) << guard->status().to_string();
        EXPECT_THAT(guard->status().message(),
                    AllOf(HasSubstr(why), HasSubstr("rank 1"), HasSubstr("rank 2")));
      }
    }
  }
}

TEST(Tls, AReplayedHandshakeIsRefused) {
  const Settings settings = by_token("secret");
  Recording recording;
  {
    Connection left, right;
    Guard connects = connector(settings), accepts = acceptor(settings);
    recording.run(connects, accepts, left, right);
    ASSERT_TRUE(accepts.status().ok());
  }
  Connection connection;
  Guard accepts = acceptor(settings);
  for (const std::string& said : recording.to_right) {
    send_all(connection.left, said);
    accepts.advance(connection.right);
  }
  EXPECT_EQ(accepts.advance(connection.right), State::failed);
  EXPECT_EQ(accepts.status().code(), Code::unauthenticated);
}

TEST(Tls, SharedMemoryKeepsTheChallenge) {
  Connection connection(SOCK_SEQPACKET);
  Guard connects = connector(by_token("secret"), {Service::memory, 1, 2});
  Guard accepts = acceptor(by_token("secret"), Service::memory);
  meet(connection, connects, accepts);
  EXPECT_EQ(accepts.advance(connection.right), State::done) << accepts.status().to_string();
  EXPECT_EQ(connects.take_tls(), nullptr);
}

class TlsFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern_of_name = (std::filesystem::temp_directory_path() / "tutti_tls.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern_of_name.data()), nullptr);
    folder_ = pattern_of_name;
    const bool made = test::make_authority(folder_, "ca") && test::make_authority(folder_, "other-ca") &&
                      test::make_certificate(folder_, "ca", "one") &&
                      test::make_certificate(folder_, "ca", "two") &&
                      test::make_certificate(folder_, "other-ca", "stranger");
    if (!made) GTEST_SKIP() << "the openssl command makes no certificates here";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Settings files(const std::string& holder, const std::string& authority = "ca",
                 const std::string& token = "") const {
    Settings settings = by_token(token);
    settings.certificate = folder_ + "/" + holder + ".pem";
    settings.key = folder_ + "/" + holder + ".key";
    settings.authority = folder_ + "/" + authority + ".pem";
    return settings;
  }
  std::pair<Code, Code> outcome(const Settings& left, const Settings& right) const {
    Connection connection;
    Guard connects = connector(left), accepts = acceptor(right);
    meet(connection, connects, accepts);
    return {connects.status().code(), accepts.status().code()};
  }

  std::string folder_;
};

TEST_F(TlsFiles, HoldersOfCertificatesOfOneAuthorityMeet) {
  using Codes = std::pair<Code, Code>;
  const Codes good{Code::ok, Code::ok}, refused{Code::unauthenticated, Code::unauthenticated};
  EXPECT_EQ(outcome(files("one"), files("two")), good);
  EXPECT_EQ(outcome(files("one", "ca", "token"), files("two", "ca", "token")), good);
  EXPECT_EQ(outcome(files("one", "ca", "token"), files("two", "ca", "another")), refused);
  EXPECT_EQ(outcome(files("stranger"), files("two")), refused);
  EXPECT_EQ(outcome(files("one"), files("stranger")), refused);
  EXPECT_EQ(outcome(files("one"), files("stranger", "other-ca")), refused);
  EXPECT_EQ(outcome(files("one"), by_token("token")), refused);
}

TEST_F(TlsFiles, FilesThatAreNoneAreNamed) {
  const auto status = [](const Settings& settings) { return Credentials::create(settings).status(); };
  Settings settings = files("one");
  settings.certificate = folder_ + "/nothing.pem";
  EXPECT_EQ(status(settings).code(), Code::invalid_argument);
  EXPECT_THAT(status(settings).message(),
              AllOf(HasSubstr("TUTTI_TLS_CERT"), HasSubstr("nothing.pem: No such file")));
  settings.certificate = folder_ + "/one.key";
  EXPECT_THAT(status(settings).message(), HasSubstr("one.key: it holds no certificate in PEM"));
  settings = files("one");
  settings.key = folder_ + "/two.key";  // the key of another certificate
  EXPECT_THAT(status(settings).message(),
              HasSubstr("two.key: it is not the key of the certificate in TUTTI_TLS_CERT"));
  settings.key = folder_ + "/one.pem";
  EXPECT_THAT(status(settings).message(), HasSubstr("one.pem: it holds no private key in PEM"));
  settings = files("one");
  settings.authority = folder_ + "/one.key";
  EXPECT_THAT(status(settings).message(), HasSubstr("TUTTI_TLS_CA"));
  settings = files("one");
  settings.key = "";
  EXPECT_THAT(status(settings).message(), HasSubstr("belong together"));
}

// The warning appears only once in a process.
TEST_F(TlsFiles, AKeyThatOthersCanReadIsWarnedOf) {
  const std::string log_file = folder_ + "/log";
  ASSERT_TRUE(log::configure(log::Level::warn, log_file).ok());
  const auto logged = [&] {
    EXPECT_TRUE(Credentials::create(files("one")).ok());
    std::ifstream input(log_file);
    return std::string(std::istreambuf_iterator<char>(input), {});
  };
  EXPECT_EQ(logged(), "");
  ASSERT_EQ(chmod((folder_ + "/one.key").c_str(), 0640), 0);
  const std::string warning = logged();
  EXPECT_THAT(warning,
              HasSubstr("TUTTI_TLS_KEY: " + folder_ + "/one.key is open to users other than its owner"));
  EXPECT_EQ(logged(), warning);
  EXPECT_TRUE(log::configure(log::Level::warn).ok());
}

TEST(Tls, NeedsSomethingToProve) {
  const Status status = Credentials::create(by_token("")).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("TUTTI_TLS needs"), HasSubstr("TUTTI_TOKEN")));
}

}  // namespace
}  // namespace tutti::security
