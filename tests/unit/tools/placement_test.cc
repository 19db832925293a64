#include "tools/run/placement.h"

#include <algorithm>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/types.h>

namespace tutti::tools {
namespace {

using testing::ElementsAre;
using Slots = std::vector<SlottedHost>;
using Placed = std::vector<PlacedHost>;

TEST(Placement, EverySlotGetsARank) {
  const Slots hosts = {{.slots = 2}, {.slots = 3}};
  EXPECT_THAT(place(hosts, {}).take(), ElementsAre(PlacedHost{0, {0, 1}}, PlacedHost{1, {2, 3, 4}}));
  EXPECT_THAT(place(hosts, {.map_by = MapBy::node}).take(),
              ElementsAre(PlacedHost{0, {0, 2}}, PlacedHost{1, {1, 3, 4}}));
}

TEST(Placement, HostsWithoutARankAreLeftOut) {
  const Slots hosts = {{.slots = 2}, {.slots = 2}, {.slots = 2}};
  EXPECT_THAT(place(hosts, {.ranks = 2}).take(), ElementsAre(PlacedHost{0, {0, 1}}));
  EXPECT_THAT(place(hosts, {.ranks = 2, .map_by = MapBy::node}).take(),
              ElementsAre(PlacedHost{0, {0}}, PlacedHost{1, {1}}));
}

TEST(Placement, AHostGetsAtMostSoManyRanks) {
  const Slots hosts = {{.slots = 4}, {.slots = 1}, {.slots = 4}};
  EXPECT_THAT(place(hosts, {.per_host = 2}).take(),
              ElementsAre(PlacedHost{0, {0, 1}}, PlacedHost{1, {2}}, PlacedHost{2, {3, 4}}));
}

TEST(Placement, RanksWithoutSlotsAreDealtInTurn) {
  const Slots hosts = {{.slots = 2, .most = 3}, {.slots = 1}, {.slots = 1}};
  EXPECT_THAT(place(hosts, {.ranks = 9, .oversubscribe = true}).take(),
              ElementsAre(PlacedHost{0, {0, 1, 4}}, PlacedHost{1, {2, 5, 7}}, PlacedHost{2, {3, 6, 8}}));
}

// A host may have more processors than its max_slots.
TEST(Placement, MaxSlotsLimitsProcessors) {
  const Slots hosts = {{.slots = 64, .most = 2}, {.slots = 1}};
  EXPECT_THAT(place(hosts, {}).take(), ElementsAre(PlacedHost{0, {0, 1}}, PlacedHost{1, {2}}));
}

TEST(Placement, ErrorsSayHowManyFit) {
  const Slots hosts = {{.slots = 2, .most = 3}, {.slots = 1, .most = 1}};
  const auto error = [&](const PlacementOptions& options) {
    return place(hosts, options).status().to_string();
  };
  EXPECT_EQ(
      error({.ranks = 4}),
      "invalid_argument: 4 ranks are too many: the hosts take 3; --oversubscribe allows more ranks than "
      "slots");
  EXPECT_EQ(error({.ranks = 5}), "invalid_argument: 5 ranks are too many: the hosts take 3");
  EXPECT_EQ(error({.ranks = 5, .oversubscribe = true}),
            "invalid_argument: 5 ranks are too many: the hosts take 4");
  EXPECT_EQ(error({.ranks = 3, .per_host = 1}),
            "invalid_argument: 3 ranks are too many: the hosts take 2 with -N 1");
  const Slots large(3, {.slots = max_ranks});
  EXPECT_EQ(place(large, {}).status().message(),
            "the hosts have 3145728 slots, and a job has at most 1048576 ranks; -n says how many to start");
}

// A `Seat` is a place for a rank. `seat` is the number of the place on its host. Places beyond the slots
// exist only with --oversubscribe, and have their own numbers.
struct Seat {
  std::size_t host;
  int seat;
  bool beyond_slots;
};

// Places the ranks by the definition: sorts all seats by the order in which they are taken. Returns
// no placement if there are too few seats.
Placed by_definition(const Slots& hosts, const PlacementOptions& options) {
  constexpr int endless = 20;
  std::vector<Seat> seats;
  int slots = 0;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const int most = std::min(hosts[host].most.value_or(endless), options.per_host.value_or(endless));
    const int room = std::min(hosts[host].slots, most);
    slots += room;
    for (int seat = 0; seat < room; ++seat) seats.push_back({host, seat, false});
    for (int seat = room; options.oversubscribe && seat < most; ++seat)
      seats.push_back({host, seat - room, true});
  }
  std::ranges::sort(seats, {}, [&](const Seat& seat) {
    const bool in_turn = seat.beyond_slots || options.map_by == MapBy::node;
    return std::tuple(seat.beyond_slots, in_turn ? seat.seat : 0, seat.host, seat.seat);
  });
  const auto ranks = static_cast<std::size_t>(options.ranks.value_or(slots));
  if (ranks > seats.size()) return {};
  Placed placed;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    PlacedHost here = {host, {}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (seats[rank].host == host) here.ranks.push_back(static_cast<int>(rank));
    }
    if (!here.ranks.empty()) placed.push_back(here);
  }
  return placed;
}

std::vector<PlacementOptions> all_options() {
  std::vector<PlacementOptions> all;
  for (int ranks = 0; ranks <= 9; ++ranks) {
    for (int per_host = 0; per_host <= 3; ++per_host) {
      for (const MapBy map_by : {MapBy::slot, MapBy::node}) {
        for (const bool oversubscribe : {false, true}) {
          all.push_back({.ranks = ranks == 0 ? std::nullopt : std::optional(ranks),
                         .per_host = per_host == 0 ? std::nullopt : std::optional(per_host),
                         .map_by = map_by,
                         .oversubscribe = oversubscribe});
        }
      }
    }
  }
  return all;
}

TEST(Placement, AllSmallCasesAreAsDefined) {
  const Slots kinds = {
      {.slots = 1}, {.slots = 1, .most = 1}, {.slots = 1, .most = 3}, {.slots = 2, .most = 3},
      {.slots = 3}, {.slots = 3, .most = 2}};
  std::vector<Slots> worlds;
  for (const SlottedHost& a : kinds) {
    worlds.push_back({a});
    for (const SlottedHost& b : kinds) {
      worlds.push_back({a, b});
      for (const SlottedHost& c : kinds) worlds.push_back({a, b, c});
    }
  }
  for (const Slots& hosts : worlds) {
    for (const PlacementOptions& options : all_options()) {
      const auto placed = place(hosts, options);
      ASSERT_EQ(placed.ok() ? *placed : Placed(), by_definition(hosts, options))
          << hosts.size() << " hosts, " << options.ranks.value_or(0) << " ranks";
    }
  }
}

}  // namespace
}  // namespace tutti::tools
