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

// Returns the store key of a rank's Introduction.
std::string rank_key(int rank);

// Returns a text such as "rank 3" or "ranks 3, 5". A long list is cut and ends with "and more".
std::string list_ranks(const std::vector<int>& ranks);

// Returns the other ranks whose keys are missing, in ascending order. Returns only the first ones if there
// are very many or if `limit` expires. Fails only if the store fails before any missing rank was found.
Result<std::vector<int>> missing_ranks(Store& store, const Introduction& self, Deadline limit);

// Decodes the Introductions; `encoded[i]` belongs to rank i. Fails if the ranks that have arrived cannot form
// one world with `self`.
Result<std::vector<Introduction>> check_gathered(const Introduction& self,
                                                 const std::vector<std::string>& encoded);

// Describes a rank that runs a different program from `self`, and says what to do if that rank belongs to
// another job. Returns an empty text if there is no such rank, or if a launcher says that both belong to one
// job.
std::string other_program(const Introduction& self, const std::vector<Introduction>& peers);

// Returns the `mismatch` error for two processes with the same rank number.
Status taken_twice(const Introduction& holder, const Introduction& self);

// Returns whether `other` is another process on this host that is still running.
bool is_alive_beside(const Introduction& self, const Introduction& other);

// Returns " at PLACE", or an empty text if there is no name for the place.
std::string at(const std::string& place);

// Returns the `timeout` error for `self`. The error names the ranks that have not arrived. `waited` is the
// time for which `self` has waited.
Status not_arrived(Store& store, const Introduction& self, const std::string& place,
                   std::chrono::milliseconds waited, Deadline limit);

}  // namespace tutti::rendezvous
