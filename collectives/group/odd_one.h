#pragma once

#include <optional>
#include <span>

#include "core/fingerprint.h"

namespace tutti {

// `OddOne` names two members whose calls differ, where one of the calls is that of more than half of all
// members.
struct OddOne {
  int odd;    // the first that calls something else
  int usual;  // the first of the majority
};

// Finds them among the calls of all members, as far as those are known. Returns nothing as long as no
// majority is known, or no member that differs from it. Takes a time that is linear in the members.
std::optional<OddOne> find_odd_one(std::span<const std::optional<Fingerprint>> calls);

}  // namespace tutti
