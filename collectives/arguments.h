#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "collectives/schedule/problem.h"
#include "core/call.h"
#include "core/fingerprint.h"

// These functions check the arguments of calls, and compute the fingerprints by which ranks compare calls.
namespace tutti {

// Returns whether two calls of one kind are equal, including the pointers. Calls that have counts are never
// equal.
inline bool is_same(const Call& a, const Call& b) {
  return a.in.data == b.in.data && a.out.data == b.out.data && a.in.count == b.in.count &&
         a.out.count == b.out.count && a.in.type == b.in.type && a.out.type == b.out.type &&
         a.in.memory == b.in.memory && a.out.memory == b.out.memory && a.root == b.root && *a.op == *b.op &&
         b.in_counts.empty() && b.out_counts.empty();
}

// Returns whether a call has no options, except possibly a time limit.
inline bool is_plain(const CallOptions& options) {
  return options.algorithm.empty() && options.stream == nullptr && options.region == nullptr;
}

// Returns the values of a call that must be equal on all ranks. The arguments of `call` need not be valid.
Fingerprint fingerprint(const Call& call, int rank, int size);

// Checks everything that one rank can check, and returns the problem for the algorithms. Errors:
// invalid_argument; unsupported if the reduction is not defined on the type. The problem refers to the counts
// of the call, so the counts must live as long as the problem.
Result<Problem> check(const Call& call, int rank, int size);

// Checks the arguments of one message, on a communicator of `size` ranks. Errors: invalid_argument.
Status check(const Transfer& transfer, int size);

// These functions return the error for a call whose region, stream or device memory cannot be used. `why`
// says why no library carries out the call. For a message with a stream, `why` is `no_messages`.
inline constexpr std::string_view no_messages = "no library carries out messages";
Status useless_region();
Status useless_stream(std::string_view why);
Status useless_memory(std::string_view why);

}  // namespace tutti
