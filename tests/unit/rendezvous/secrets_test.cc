// Tests that a token, and the keys derived from it, are overwritten before their memory is freed.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/config.h>

#include "core/random.h"
#include "core/security/keys.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/meeting/pmi_announcer.h"
#include "rendezvous/meeting/session.h"
#include "rendezvous/meeting/session_file.h"
#include "tests/support/pmi_launcher.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/core/guard_ends.h"
#include "tests/unit/rendezvous/freed_memory.h"

namespace tutti::security {
namespace {

using std::chrono::seconds;
using test::found_in_freed_memory;

// The tokens are literals, so that the test itself frees no memory with a token.
constexpr char token[] = "a token that is longer than what a string keeps within itself";
constexpr std::size_t token_bytes = sizeof token - 1;
constexpr char session_token[] = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0";

class Secrets : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    master_ = hmac(bytes_of("tutti token 1"), {bytes_of(token)});
    proof_ = hmac(master_, {bytes_of("proof")});
    test::look_for(bytes_of(token));
    test::look_for(master_);
    test::look_for(proof_);
    test::look_for(bytes_of(session_token));
    const std::string_view text(session_token);
    token_in_hex_ = to_hex({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
    test::look_for(bytes_of(token_in_hex_));
  }
  void SetUp() override {
    unsetenv("TUTTI_TOKEN");
    unsetenv("TUTTI_TOKEN_FILE");
    found_in_freed_memory();
  }

  static Digest master_, proof_;
  static std::string token_in_hex_;  // the form in which launchers get the token
};

Digest Secrets::master_, Secrets::proof_;
std::string Secrets::token_in_hex_;

void use(const Settings& settings) {
  const SharedCredentials credentials = Credentials::create(settings).take();
  Connection connection;
  Guard connects = Guard::connecting(credentials, {Service::data, 1, 2}, Deadline::after(seconds(60)));
  Guard accepts = Guard::accepting(credentials, Service::data, 2, Deadline::after(seconds(60)));
  meet(connection, connects, accepts);
  EXPECT_TRUE(connects.status().ok() && accepts.status().ok());
}

TEST_F(Secrets, WhatIsGivenBackIsLookedAt) {
  { const std::string copy(token); }
  EXPECT_EQ(found_in_freed_memory(), 1u);
}

TEST_F(Secrets, ATokenOfTheEnvironmentIsOverwritten) {
  setenv("TUTTI_TOKEN", token, 1);
  EXPECT_TRUE(discover().ok());
  for (const bool tls : {false, true}) {
    Settings settings = settings_from(Config::from_environment().take()).take();
    EXPECT_EQ(settings.token.reveal(), token);
    settings.tls = tls;
    use(settings);
  }
  EXPECT_EQ(found_in_freed_memory(), 0u);
}

TEST_F(Secrets, ATokenOfAFileIsOverwritten) {
  const test::ScratchFolder folder;
  const std::string path = folder.path() + "/token";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(file, token, token_bytes), static_cast<ssize_t>(token_bytes));
  close(file);
  setenv("TUTTI_TOKEN_FILE", path.c_str(), 1);
  use(settings_from(Config::from_environment().take()).take());
  EXPECT_EQ(found_in_freed_memory(), 0u);
}

TEST_F(Secrets, ATokenThatASessionFileAddsToIsOverwritten) {
  const test::ScratchFolder folder;
  Launch launch;
  launch.world_size = 2;
  launch.store.kind = StoreLocation::Kind::file;
  launch.store.path = folder.path() + "/session";
  SessionOptions options;
  options.security.token = Secret(token);
  const Result<Session> session = serve_or_connect(launch, options, Deadline::after(seconds(60)));
  EXPECT_TRUE(session.ok()) << session.status().to_string();
  EXPECT_EQ(found_in_freed_memory(), 0u);
}

// The rank that writes the session file overwrites the token in memory. A rank that reads the file
// also does so, even if it cannot reach the store that the file names.
TEST_F(Secrets, TheTokenOfASessionFileIsOverwritten) {
  const test::ScratchFolder folder;
  Launch launch;
  launch.rank = 1;
  launch.world_size = 2;
  launch.store.kind = StoreLocation::Kind::file;
  launch.store.path = folder.path() + "/session";
  {
    const SessionText text{random_hex(16), Secret(session_token), boot_id(), {{"127.0.0.1", 1}}};
    file::SessionFile published(launch.store.path);
    ASSERT_TRUE(published.publish(format_session(text), Deadline::never()).ok());
    ASSERT_EQ(unlink(launch.store.path.c_str()), 0);
    published.restore_if_missing();
    EXPECT_EQ(read_session(published, Deadline::never()).take().token.reveal(), session_token);
    EXPECT_FALSE(serve_or_connect(launch, {}, Deadline::after(std::chrono::milliseconds(200))).ok());
  }
  EXPECT_EQ(found_in_freed_memory(), 0u);
}

// The launcher is another process. The test does not search its memory, because launchers such as
// mpiexec do not overwrite the token.
TEST_F(Secrets, TheTokenOfASessionThatALauncherPassesOnIsOverwritten) {
  const Deadline ample = Deadline::after(seconds(60));
  test::PmiLauncher launcher(2);
  const pid_t process = fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    launcher.hand_over();
    launcher.serve();
    _exit(0);
  }
  {
    PmiClient zero(launcher.socket(0)), one(launcher.socket(1));
    launcher.hand_over();
    std::thread publisher([&] {
      const SessionText text{random_hex(16), Secret(session_token), boot_id(), {{"127.0.0.1", 1}}};
      PmiAnnouncer announcer(zero, {});
      EXPECT_TRUE(announcer.publish(format_session(text), ample).ok());
    });
    PmiAnnouncer announcer(one, {});
    const Result<SessionText> read = read_session(announcer, ample);
    publisher.join();
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(read->token.reveal(), session_token);
  }
  EXPECT_EQ(found_in_freed_memory(), 0u);
  ASSERT_EQ(waitpid(process, nullptr, 0), process);
}

}  // namespace
}  // namespace tutti::security
