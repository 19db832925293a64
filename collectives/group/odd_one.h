#pragma once

#include <optional>
#include <span>

#include "core/fingerprint.h"

namespace tutti {

// Two members whose calls differ, where one of the calls is that of more than half of all members.
struct OddOne {
  int odd;    // the first that calls something else
  int usual;  // the first of the majority
};

// `calls`: by member, as far as they are known. Nothing if no majority or nobody who differs is known yet.
// Takes a time that is linear in the members.
std::optional<OddOne> find_odd_one(std::span<const std::optional<Fingerprint>> calls);

}  // namespace tutti
