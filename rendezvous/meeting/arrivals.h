#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>
#include <tutti/store.h>

#include "rendezvous/meeting/introduction.h"

// These functions find out which ranks have arrived at a meeting and which have not.
namespace tutti::rendezvous {

inline constexpr std::size_t ranks_per_request = 256;

// The key under which a rank introduces itself.
std::string rank_key(int rank);

// "rank 3", "ranks 3, 5", with "and more" after some.
std::string list_ranks(const std::vector<int>& ranks);

// The other ranks whose keys are missing, in ascending order, or the first of very many. If the store does
// not answer within the limit, that is an error only if nothing is known by then.
Result<std::vector<int>> missing_ranks(Store& store, const Introduction& self, Deadline limit);

// Fails if the ranks that have arrived cannot be one world with `self`. `encoded` holds their introductions
// by rank.
Status check_gathered(const Introduction& self, const std::vector<std::string>& encoded);

// Describes a rank that was started as another program than `self`, and says what to do if it belongs to
// another job; empty if there is none, or if a launcher says that they are one job. `encoded` as above.
std::string other_program(const Introduction& self, const std::vector<std::string>& encoded);

// The `mismatch` of two processes of one rank number.
Status taken_twice(const Introduction& holder, const Introduction& self);

// Returns whether `other` is another process of this host that still runs.
bool is_alive_beside(const Introduction& self, const Introduction& other);

// The `timeout` of a meeting that `self` has waited for.
Status not_arrived(Store& store, const Introduction& self, const std::string& place,
                   std::chrono::milliseconds waited, Deadline limit);

}  // namespace tutti::rendezvous
