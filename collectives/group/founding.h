#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collectives/group/group.h"

namespace tutti {

// A `Vote` has the values that one rank sends to the others in each round of a founding. `room` and `place`
// are negative if the rank has none.
struct Vote {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::int64_t number = 0;  // a context number that the rank has not used yet
  // This is 1 if the rank could reserve the highest number of the last round. In the first round of
  // `agree_together`, it is 1 if the rank could reserve its own `number`.
  std::int64_t reserved = 0;
  std::int64_t room = -1;   // see HostMemory::room
  std::int64_t place = -1;  // the place of the range that the rank hands out
};
inline constexpr std::size_t vote_words = sizeof(Vote) / sizeof(std::int64_t);

// A `Founding` is one rank's part in making new communicators: `Communicator::split`,
// `Communicator::group` and `OffloadPeers::host_calls`. The voters agree on three things
// (docs/seams/communicators.md): the members of each new communicator, a context number that none
// of them has used, and the memory that the members share.
//
// The functions are collective among the voters: they block, and throw `Error` on failure.
class Founding {
 public:
  // Sends this rank's vote to all voters, and sets `votes` to the votes of all voters. The order of the votes
  // is the same on all voters.
  using Exchange = std::function<void(const Vote& mine, std::span<Vote> votes)>;

  // `voters` are ranks of `group`. Throws in a forked child, and inside a `then` callback.
  Founding(Group& group, std::vector<int> voters, Exchange exchange);
  // Makes one communicator for each color. Its members are ordered by key, then by the order of the voters.
  void agree(std::int64_t color, int key);
  // Makes one communicator of all voters, in the order of the voters. All of them must pass the same color.
  void agree_together(std::int64_t color);

  // These functions return the result of `agree` or `agree_together`. `ranks` returns the members
  // of the new communicator as world ranks. `place` returns the place of their range of shared
  // memory, or nothing if they do not share memory.
  std::uint32_t number() const { return number_; }
  const std::vector<int>& ranks() const { return ranks_; }
  std::optional<std::uint64_t> place() const { return place_; }

 private:
  Vote first_vote(std::int64_t color, int key);
  bool reserve();
  void settle(Vote mine, std::optional<std::size_t> giver);
  void name_members();
  std::optional<std::size_t> choose_giver() const;
  std::int64_t hand_out();
  void take_back(std::int64_t place);
  void find_place(std::optional<std::size_t> giver);
  void vote(const Vote& mine);

  Group& group_;
  World& world_;
  const std::vector<int> voters_;
  const Exchange exchange_;
  std::vector<Vote> votes_;           // by position among the voters
  std::vector<std::size_t> members_;  // positions of the voters with this rank's color
  std::vector<int> ranks_;
  std::uint32_t number_ = 0;
  std::uint32_t reserved_ = 0;  // the last number that this rank has reserved; 0: none
  std::optional<std::uint64_t> place_;
};

}  // namespace tutti
