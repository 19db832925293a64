#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/descriptor.h"

namespace tutti::test {

// A `PmiLauncher` serves the protocol PMI-1 to several ranks, as MPICH's mpiexec does. After a rank
// has put a value, other ranks can read this value only after the next fence.
class PmiLauncher {
 public:
  explicit PmiLauncher(int ranks, std::size_t value_limit = 1024) : value_limit_(value_limit) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::array<int, 2> ends{-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      ours_.emplace_back(ends[0]);
      theirs_.emplace_back(ends[1]);
    }
  }
  // Returns the descriptor that mpiexec would pass to the rank in PMI_FD.
  int socket(int rank) const { return theirs_[static_cast<std::size_t>(rank)].get(); }
  // Closes this process's copies of the ranks' ends, so that `serve` notices when a rank closes its own end.
  void hand_over() { theirs_.clear(); }
  // Serves until no rank is connected.
  void serve() {
    while (serve_once()) {
    }
  }
  int farewells() const { return farewells_; }

 private:
  bool serve_once() {
    std::vector<pollfd> watched;
    for (const Descriptor& end : ours_) watched.push_back({end.get(), POLLIN, 0});
    bool any = false;
    for (const Descriptor& end : ours_) any |= static_cast<bool>(end);
    if (!any || poll(watched.data(), watched.size(), 60'000) <= 0) return false;
    for (std::size_t rank = 0; rank < ours_.size(); ++rank) {
      if (watched[rank].revents != 0) receive(rank);
    }
    return true;
  }
  void receive(std::size_t rank) {
    std::array<char, 4096> bytes;
    const ssize_t got = read(ours_[rank].get(), bytes.data(), bytes.size());
    if (got <= 0) {
      ours_[rank].reset();
      return;
    }
    EXPECT_LE(got, 1024);  // Slurm does not accept a longer request
    std::string& line = received_[rank].append(bytes.data(), static_cast<std::size_t>(got));
    if (line.back() != '\n') return;
    answer(rank, line.substr(0, line.size() - 1));
    line.clear();
  }
  void answer(std::size_t rank, const std::string& line) {
    const std::string command = value_in(line, "cmd"), key = value_in(line, "key");
    if (command == "init") return say(rank, "response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    if (command == "get_my_kvsname") return say(rank, "my_kvsname kvsname=kvs_1_0");
    if (command == "get_maxes")
      return say(rank, "maxes kvsname_max=256 keylen_max=64 vallen_max=" + std::to_string(value_limit_));
    if (command == "put") {
      const std::string value = value_in(line, "value");
      EXPECT_LT(value.size(), value_limit_);
      EXPECT_LT(key.size(), 64u);
      put_[key] = value;
      return say(rank, "put_result rc=0 msg=success");
    }
    if (command == "get") {
      const auto found = readable_.find(key);
      if (found == readable_.end())
        return say(rank, "get_result rc=-1 msg=key_" + key + "_not_found value=unknown");
      return say(rank, "get_result rc=0 msg=success value=" + found->second);
    }
    if (command == "barrier_in") return come_to_the_fence();
    EXPECT_EQ(command, "finalize") << line;
    ++farewells_;
    say(rank, "finalize_ack");
  }
  void come_to_the_fence() {
    if (++at_the_fence_ < ours_.size()) return;
    at_the_fence_ = 0;
    readable_ = put_;
    for (std::size_t rank = 0; rank < ours_.size(); ++rank) say(rank, "barrier_out");
  }
  void say(std::size_t rank, const std::string& answer) {
    const std::string line = "cmd=" + answer + "\n";
    // The result is ignored, since the rank may have closed its socket.
    static_cast<void>(send(ours_[rank].get(), line.data(), line.size(), MSG_NOSIGNAL));
  }
  static std::string value_in(const std::string& line, const std::string& name) {
    const std::string spaced = " " + line;
    const std::size_t at = spaced.find(" " + name + "=");
    if (at == std::string::npos) return {};
    const std::size_t start = at + name.size() + 2;
    return spaced.substr(start, spaced.find(' ', start) - start);
  }

  std::vector<Descriptor> ours_, theirs_;
  std::map<std::size_t, std::string> received_;  // for each rank, the part of its next line that has arrived
  std::map<std::string, std::string> put_, readable_;
  const std::size_t value_limit_;
  std::size_t at_the_fence_ = 0;
  int farewells_ = 0;
};

}  // namespace tutti::test
