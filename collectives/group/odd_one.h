#pragma once

#include <optional>
#include <span>

#include "core/fingerprint.h"

namespace tutti {

// `OddOne` names two members whose calls differ. One of them made the same call as the majority of all
// members.
struct OddOne {
  int odd;    // the first member that has made a different call
  int usual;  // the first member of the majority
};

// Finds two such members among the calls that are known. Returns nothing if no majority is known yet, or if
// no known call differs from the majority's. The time is linear in the number of members.
std::optional<OddOne> find_odd_one(std::span<const std::optional<Fingerprint>> calls);

}  // namespace tutti
