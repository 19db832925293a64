#include "tools/run/placement.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include <tutti/types.h>

namespace tutti::tools {
namespace {

// `Room` holds the number of ranks that each host takes.
using Room = std::vector<int>;

// Returns the number of ranks that each host takes, with or without --oversubscribe.
Room room_of(std::span<const SlottedHost> hosts, std::optional<int> per_host, bool oversubscribe) {
  Room room;
  for (const SlottedHost& host : hosts) {
    const int most = std::min(host.most.value_or(max_ranks), per_host.value_or(max_ranks));
    room.push_back(oversubscribe ? most : std::min(host.slots, most));
  }
  return room;
}

std::int64_t sum_of(const Room& room) { return std::accumulate(room.begin(), room.end(), std::int64_t{0}); }

std::string too_many(std::int64_t ranks, std::int64_t places, const PlacementOptions& options,
                     bool would_fit) {
  return std::to_string(ranks) + " ranks are too many: the hosts take " + std::to_string(places) +
         (options.per_host ? " with -N " + std::to_string(*options.per_host) : "") +
         (would_fit ? "; --oversubscribe allows more ranks than slots" : "");
}

// `Dealer` hands out the ranks in ascending order, until none is left.
class Dealer {
 public:
  Dealer(std::size_t hosts, int ranks) : ranks_(ranks) {
    for (std::size_t i = 0; i < hosts; ++i) placed_.push_back({i, {}});
  }

  void fill_one_after_the_other(const Room& room) {
    for (PlacedHost& host : placed_) {
      while (next_ < ranks_ && !is_full(host, room)) host.ranks.push_back(next_++);
    }
  }

  void deal_in_turn(const Room& room) {
    for (int before = -1; before != next_;) {
      before = next_;
      for (PlacedHost& host : placed_) {
        if (next_ < ranks_ && !is_full(host, room)) host.ranks.push_back(next_++);
      }
    }
  }

  std::vector<PlacedHost> take() {
    std::erase_if(placed_, [](const PlacedHost& host) { return host.ranks.empty(); });
    return std::move(placed_);
  }

 private:
  static bool is_full(const PlacedHost& host, const Room& room) {
    return host.ranks.size() >= static_cast<std::size_t>(room[host.index]);
  }

  std::vector<PlacedHost> placed_;
  int next_ = 0;
  int ranks_;
};

}  // namespace

Result<std::vector<PlacedHost>> place(std::span<const SlottedHost> hosts, const PlacementOptions& options) {
  const Room slots = room_of(hosts, options.per_host, false);
  const Room limits = room_of(hosts, options.per_host, true);
  const std::int64_t ranks = options.ranks ? *options.ranks : sum_of(slots);
  const std::int64_t places = sum_of(options.oversubscribe ? limits : slots);
  if (ranks > places) {
    return Status(Code::invalid_argument, too_many(ranks, places, options, ranks <= sum_of(limits)));
  }
  if (ranks > max_ranks) {
    return Status(Code::invalid_argument, "the hosts have " + std::to_string(ranks) +
                                              " slots, and a job has at most " + std::to_string(max_ranks) +
                                              " ranks; -n says how many to start");
  }
  Dealer dealer(hosts.size(), static_cast<int>(ranks));
  if (options.map_by == MapBy::slot) {
    dealer.fill_one_after_the_other(slots);
  } else {
    dealer.deal_in_turn(slots);
  }
  dealer.deal_in_turn(limits);
  return dealer.take();
}

}  // namespace tutti::tools
