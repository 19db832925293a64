// Tests how rank 0 passes a session to the other ranks through their launcher. The launcher is
// part of the test, but the sockets are real. tests/multiprocess/mpiexec_test.cc does the same with
// MPICH's launcher.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rendezvous/meeting/pmi_announcer.h"
#include "rendezvous/meeting/pmi_client.h"
#include "tests/support/pmi_launcher.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using test::PmiLauncher;

Deadline ample() { return Deadline::after(seconds(60)); }

// A `Job` is a launcher with a client for each rank.
class Job {
 public:
  explicit Job(int ranks, std::size_t value_limit = 1024) : launcher_(ranks, value_limit) {
    for (int rank = 0; rank < ranks; ++rank)
      clients_.push_back(std::make_unique<PmiClient>(launcher_.socket(rank)));
    launcher_.hand_over();
    thread_ = std::thread([this] { launcher_.serve(); });
  }
  ~Job() { end(); }
  // Ends the clients, and then the launcher.
  void end() {
    clients_.clear();
    if (thread_.joinable()) thread_.join();
  }

  PmiClient& client(int rank) { return *clients_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(clients_.size()); }
  int farewells() const { return launcher_.farewells(); }

  // Lets rank 0 publish the text. Returns the texts that the other ranks have read.
  std::vector<std::string> pass_on(const std::string& text) {
    std::vector<std::string> read(clients_.size() - 1);
    std::vector<std::thread> threads;
    for (int rank = 1; rank < size(); ++rank) {
      threads.emplace_back([this, rank, &read] {
        PmiAnnouncer announcer(client(rank), {});
        for (int times = 0; times < 2; ++times) {  // the second read needs no fence
          const Result<Secret> found = announcer.read(ample());
          EXPECT_TRUE(found.ok()) << found.status().to_string();
          if (found.ok()) read[static_cast<std::size_t>(rank - 1)] = found->reveal();
        }
      });
    }
    PmiAnnouncer announcer(client(0), {});
    const Status status = announcer.publish(Secret(text), ample());
    EXPECT_TRUE(status.ok()) << status.to_string();
    for (std::thread& thread : threads) thread.join();
    return read;
  }

 private:
  PmiLauncher launcher_;
  std::vector<std::unique_ptr<PmiClient>> clients_;
  std::thread thread_;
};

TEST(Pmi, HandsATextOfAnyLengthOn) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const std::size_t value_limit : {64, 1024, 100'000}) {
      Job job(ranks, value_limit);
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{31}, std::size_t{600}, max_session_bytes}) {
        std::string text = "tutti-session 1\n" + std::string(bytes, 'x') + "\n";
        text = text.substr(text.size() - bytes);
        for (const std::string& read : job.pass_on(text)) EXPECT_EQ(read, text);
      }
    }
  }
}

TEST(Pmi, SaysGoodbyeOnceAndOnlyIfItHasSpoken) {
  Job job(3);
  job.pass_on("a");
  job.pass_on("b");
  job.end();
  EXPECT_EQ(job.farewells(), 3);
  Job silent(3);
  silent.end();
  EXPECT_EQ(silent.farewells(), 0);
}

TEST(Pmi, AForkedChildDoesNotSayGoodbyeForItsParent) {
  Job job(2);
  job.pass_on("a");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    job.client(0).~PmiClient();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  for (const std::string& read : job.pass_on("b")) EXPECT_EQ(read, "b");
  job.end();
  EXPECT_EQ(job.farewells(), 2);
}

TEST(Pmi, WaitsForTheOthersNoLongerThanItMay) {
  for (const bool reads : {false, true}) {
    for (const bool interrupted : {false, true}) {
      Job job(2);
      PmiAnnouncer announcer(job.client(0), [&] { return interrupted; });
      const Deadline deadline = interrupted ? ample() : Deadline::after(std::chrono::seconds(2));
      const Status status =
          reads ? announcer.read(deadline).status() : announcer.publish(Secret("text"), deadline);
      EXPECT_EQ(status.code(), interrupted ? Code::aborted : Code::timeout) << status.to_string();
      const std::string why = interrupted ? "interrupted" : "not all ranks have come";
      EXPECT_NE(status.message().find(why), std::string::npos) << status.to_string();
      // The missing answer might still arrive, so the socket cannot be used again.
      const Status later = announcer.read(ample()).status();
      EXPECT_EQ(later.code(), Code::invalid_argument) << later.to_string();
      job.end();
      EXPECT_EQ(job.farewells(), 0);  // without a farewell, a real mpiexec would end the job
    }
  }
}

TEST(Pmi, MeetsForOneThreadAtATime) {
  Job job(2);
  std::unique_lock<std::mutex> turn;
  ASSERT_TRUE(job.client(0).begin(turn, {}, ample()).ok());
  std::thread([&] {
    PmiAnnouncer announcer(job.client(0), {});
    const Status status = announcer.publish(Secret("text"), ample());
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    EXPECT_NE(status.message().find("another thread"), std::string::npos);
  }).join();
}

// Checks that no session can be read or published at this descriptor. The error must give the
// reason and a remedy.
void expect_useless(int socket, const std::string& why) {
  PmiClient client(socket);
  PmiAnnouncer announcer(client, {});
  for (const Status& status :
       {announcer.read(ample()).status(), announcer.publish(Secret("text"), ample())}) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    for (const std::string& part : {"PMI_FD is " + std::to_string(socket), why, std::string("MASTER_ADDR")})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.to_string();
  }
}

TEST(Pmi, WhatIsNoLauncherIsOneClearError) {
  expect_useless(9999, "this descriptor is not open");
  std::FILE* const file = std::tmpfile();
  expect_useless(fileno(file), "non-socket");
  struct stat info = {};
  ASSERT_EQ(fstat(fileno(file), &info), 0);
  EXPECT_EQ(info.st_size, 0);  // the client has not written into another program's file
  std::fclose(file);

  for (const auto& [answer, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "closed"},
           {"\n", "it gives no response_to_init"},
           {"cmd=response_to_init rc=-1 msg=version_mismatch\n", "version_mismatch"},
           {"cmd=response_to_init=\n", "it gives no response_to_init"},
           {"    19cmd=init-ack;rc=0;pmi-version=2;\n", "it gives no response_to_init"},
           {std::string(100'000, 'x'), "too long"}}) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    std::thread launcher([&ends, &answer = answer] {
      std::array<char, 256> question;
      EXPECT_GT(read(ends[0], question.data(), question.size()), 0);
      static_cast<void>(send(ends[0], answer.data(), answer.size(), MSG_NOSIGNAL));
      shutdown(ends[0], SHUT_WR);
    });
    expect_useless(ends[1], why);
    close(ends[1]);
    launcher.join();
    close(ends[0]);
  }
}

// The answer of a launcher that refuses a value may contain that value.
TEST(Pmi, ASessionThatTheLauncherRefusesIsNotShown) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  std::thread launcher([&ends] {
    for (const std::string answer : {"cmd=response_to_init rc=0\n", "cmd=maxes vallen_max=1024\n",
                                     "cmd=my_kvsname kvsname=space\n", "cmd=put_result rc=-1 msg="}) {
      std::array<char, 1024> question;
      const ssize_t got = read(ends[0], question.data(), question.size());
      const std::string asked(question.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
      const std::string said = answer.ends_with('=') ? answer + asked.substr(asked.rfind('=') + 1) : answer;
      EXPECT_EQ(send(ends[0], said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
    }
  });
  {
    PmiClient client(ends[1]);
    PmiAnnouncer announcer(client, {});
    const Status status = announcer.publish(Secret("secret"), ample());
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    EXPECT_NE(status.message().find("put_result"), std::string::npos) << status.to_string();
    EXPECT_EQ(status.message().find("736563726574"), std::string::npos) << status.to_string();
  }
  launcher.join();
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace tutti
