#include "tools/doctor/rounds.h"

#include <algorithm>

namespace tutti::tools::doctor {

// This is the circle method of tournaments: the last player stays in its place, while the others
// move on by one place after each round. If the number of hosts is odd, one more player stands for
// no host. A host that meets this player rests in that round.
std::vector<Round> plan_rounds(std::size_t hosts) {
  const std::size_t players = hosts + hosts % 2;
  std::vector<Round> rounds;
  if (hosts < 2) return rounds;
  const std::size_t moving = players - 1;
  for (std::size_t turn = 0; turn < std::min(moving, most_rounds); ++turn) {
    Round& round = rounds.emplace_back();
    for (std::size_t place = 0; place < players / 2; ++place) {
      const std::size_t one = (turn + place) % moving;
      const std::size_t other = place == 0 ? moving : (turn + moving - place) % moving;
      if (std::max(one, other) < hosts) round.emplace_back(std::min(one, other), std::max(one, other));
    }
  }
  return rounds;
}

}  // namespace tutti::tools::doctor
