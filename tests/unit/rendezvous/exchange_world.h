#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/meeting/exchange.h"
#include "rendezvous/store/memory/memory_store.h"

// These functions let the ranks of a world meet, each in a thread of this process.
namespace tutti {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Result<std::vector<PeerInfo>>;

inline Deadline ample() { return Deadline::after(seconds(60)); }

inline Introduction rank_of(int rank, int world_size, const std::string& digest = "TUTTI_SHM_WINDOW=1M;") {
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = world_size;
  self.host = "host" + std::to_string(rank);
  self.pid = 100 + rank;
  self.addresses = {{"tcp", "address " + std::to_string(rank)}, {"shm", std::string("\0\xff", 2)}};
  self.offloads = {{"nccl", "device " + std::to_string(rank)}};
  self.wire_digest = digest;
  self.version = "1";
  return self;
}

// Runs each exchange in its own thread.
inline std::vector<Outcome> meet(Store& store, const std::vector<Introduction>& ranks,
                                 const ExchangeOptions& options = {}, Deadline deadline = ample()) {
  std::vector<Outcome> outcomes(ranks.size(), Status(Code::internal, "not run"));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = exchange(store, ranks[i], options, deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

inline std::vector<Introduction> world_of(int size) {
  std::vector<Introduction> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank_of(rank, size));
  return ranks;
}

inline void expect_complete(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    ASSERT_EQ(outcome->size(), outcomes.size());
    for (std::size_t i = 0; i < outcome->size(); ++i) {
      const PeerInfo& peer = (*outcome)[i];
      EXPECT_EQ(peer.rank, static_cast<int>(i));
      EXPECT_EQ(peer.host, "host" + std::to_string(i));
      EXPECT_EQ(peer.addresses.at("tcp"), "address " + std::to_string(i));
      EXPECT_EQ(peer.offloads.at("nccl"), "device " + std::to_string(i));
      EXPECT_EQ(peer.addresses.at("shm"), std::string("\0\xff", 2));
    }
  }
}

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

}  // namespace tutti
