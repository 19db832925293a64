#include "collectives/group/odd_one.h"

#include <algorithm>
#include <cstddef>

namespace tutti {
namespace {

// Returns the call that more than half of the ranks have made. If there is no such call, returns
// any of the calls. This is the majority vote of Boyer and Moore ("MJRTY", 1981). Each call cancels
// one different call. All other calls together cannot cancel a majority.
std::optional<Fingerprint> candidate(std::span<const std::optional<Fingerprint>> calls) {
  std::optional<Fingerprint> leading;
  std::size_t lead = 0;
  for (const auto& call : calls) {
    if (lead == 0) leading = call;
    lead = call == leading ? lead + 1 : lead - 1;
  }
  return leading;
}

}  // namespace

std::optional<OddOne> find_odd_one(std::span<const std::optional<Fingerprint>> calls) {
  const std::optional<Fingerprint> most = candidate(calls);
  if (!most || 2 * static_cast<std::size_t>(std::ranges::count(calls, most)) <= calls.size()) return {};
  const auto differs = [&](const auto& call) { return call && call != most; };
  const auto odd = std::ranges::find_if(calls, differs);
  if (odd == calls.end()) return {};
  return OddOne{static_cast<int>(odd - calls.begin()),
                static_cast<int>(std::ranges::find(calls, most) - calls.begin())};
}

}  // namespace tutti
