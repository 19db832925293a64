#include "rendezvous/meeting/arrivals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <tutti/config_values.h>

namespace tutti::rendezvous {
namespace {

constexpr std::size_t most_missing_named = 16;

}  // namespace

std::string rank_key(int rank) { return "rank/" + std::to_string(rank); }

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), most_missing_named); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > most_missing_named ? text + " and more" : text;
}

// Asks for whole blocks of ranks first, so the search is quick if only a few ranks of a large world are
// missing.
Result<std::vector<int>> missing_ranks(Store& store, const Introduction& self, Deadline limit) {
  std::vector<int> missing;
  for (int first = 0; first < self.world_size; first += static_cast<int>(ranks_per_request)) {
    const int last = std::min(self.world_size, first + static_cast<int>(ranks_per_request));
    std::vector<std::string> keys;
    for (int rank = first; rank < last; ++rank) {
      if (rank != self.rank) keys.push_back(rank_key(rank));
    }
    if (limit.expired()) return missing;
    if (store.wait(keys, Deadline::after(std::chrono::nanoseconds(0))).ok()) continue;
    for (int rank = first; rank < last; ++rank) {
      if (rank == self.rank) continue;
      const Result<bool> there = store.exists(rank_key(rank), limit);
      if (!there.ok() && missing.empty()) return there.status();
      if (!there.ok() || limit.expired() || missing.size() > most_missing_named) return missing;
      if (!*there) missing.push_back(rank);
    }
  }
  return missing;
}

Result<std::vector<Introduction>> check_gathered(const Introduction& self,
                                                 const std::vector<std::string>& encoded) {
  std::vector<Introduction> peers;
  peers.reserve(encoded.size());
  for (std::size_t rank = 0; rank < encoded.size(); ++rank) {
    Result<Introduction> peer = decode_introduction(encoded[rank]);
    if (!peer.ok()) return peer.status().with_context("rank " + std::to_string(rank));
    if (static_cast<std::size_t>(peer->rank) != rank) {
      return Status(Code::protocol_error,
                    "the key of rank " + std::to_string(rank) + " holds " + peer->describe());
    }
    if (Status status = check_compatible(self, *peer); !status.ok()) return status;
    peers.push_back(*std::move(peer));
  }
  return peers;
}

std::string other_program(const Introduction& self, const std::vector<Introduction>& peers) {
  if (self.program.empty()) return {};
  for (const Introduction& peer : peers) {
    if (peer.program.empty() || peer.program == self.program) continue;
    const bool one_job = std::ranges::any_of(self.job, [&](const auto& said) {
      const auto other = peer.job.find(said.first);
      return other != peer.job.end() && other->second == said.second;
    });
    if (one_job) continue;
    return peer.describe() + " runs '" + peer.program + "' but " + self.describe() + " runs '" +
           self.program + "'; if these are two jobs, give each its own MASTER_PORT or TUTTI_JOB_ID";
  }
  return {};
}

Status taken_twice(const Introduction& holder, const Introduction& self) {
  return Status(Code::mismatch,
                "rank " + std::to_string(self.rank) + " is taken twice: on host " + holder.host + " by pid " +
                    std::to_string(holder.pid) + " and on host " + self.host + " by pid " +
                    std::to_string(self.pid),
                self.rank);
}

bool is_alive_beside(const Introduction& self, const Introduction& other) {
  const bool same_host = !self.boot_id.empty() && self.boot_id == other.boot_id;
  return same_host && self.pid != other.pid &&
         (kill(static_cast<pid_t>(other.pid), 0) == 0 || errno == EPERM);
}

std::string at(const std::string& place) { return place.empty() ? std::string() : " at " + place; }

Status not_arrived(Store& store, const Introduction& self, const std::string& place,
                   std::chrono::milliseconds waited, Deadline limit) {
  const Result<std::vector<int>> found = missing_ranks(store, self, limit);
  const std::vector<int> missing = found.ok() ? *found : std::vector<int>();
  const std::string tail = " within " + format_duration(waited) + at(place) + " (as seen by " +
                           self.describe() + ", world size " + std::to_string(self.world_size) + ")";
  if (missing.empty()) return Status(Code::timeout, "not all ranks met" + tail);
  return Status(Code::timeout,
                list_ranks(missing) + (missing.size() == 1 ? " has" : " have") + " not arrived" + tail,
                missing.front());
}

}  // namespace tutti::rendezvous
