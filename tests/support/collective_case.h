#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

namespace tutti::test {

// A `CollectiveCase` is one collective with known inputs and a known answer. Every input element is a small
// whole number. So every type holds every intermediate result exactly, and the answer does not depend on
// the order of operations.
struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t count = 1;  // see Problem::count; for the _v kinds, the count of the largest block
  int root = 0;
  bool in_place = false;
  std::string algorithm = {};
  // Zero means the communicator's default.
  std::chrono::nanoseconds timeout = std::chrono::seconds(120);

  std::string describe() const;
};

// Returns whether the collective has an in-place form in the API.
bool has_in_place(CollectiveKind kind);

// Returns an operation whose result is the rightmost operand that is not zero. The operation is
// associative but not commutative, so only rank order gives the right answer.
ReduceOp last_nonzero();

// `CaseMemory` is memory for the input and output of a case. If the caller gives no memory, the
// case allocates its own. Each span includes `case_guard` spare bytes on both sides.
struct CaseMemory {
  std::span<std::byte> input = {};
  std::span<std::byte> output = {};
};
inline constexpr std::size_t case_guard = 64;

// `CaseCall` has the arguments of a case's call on one rank.
struct CaseCall {
  ConstBuffer in;
  Buffer out;
  std::span<const std::uint64_t> in_counts;  // one count for each rank, or a single count
  std::span<const std::uint64_t> out_counts;
};

// A `Perform` carries out a case's call and waits for it. It throws `Error` if the call fails. `perform` uses
// the C++ interface.
using Perform = std::function<void(Communicator&, const CollectiveCase&, const CaseCall&)>;
void perform(Communicator& communicator, const CollectiveCase& test, const CaseCall& call);

// Runs the case on this rank, and checks the output, the bytes around it and the input. Returns an
// empty text, or a description of the error. Every rank of `communicator` must call this function
// with an equal case.
std::string run_case(Communicator& communicator, const CollectiveCase& test, const CaseMemory& memory = {},
                     const Perform& by = perform);
// Works like `run_case`, but throws the `Error` of an operation that fails.
std::string attempt_case(Communicator& communicator, const CollectiveCase& test,
                         const CaseMemory& memory = {}, const Perform& by = perform);

// Returns the matrix: every kind of collective with every type and operation that the tests compute, in and
// out of place. The count and the root change from case to case.
std::vector<CollectiveCase> collective_matrix(int size);

// Returns a part of the matrix. Different sizes get different parts. A case has five properties: kind, type,
// operation, count and place (in or out of place). The part covers all pairs: for any two properties, it has
// every combination of values that the matrix has.
std::vector<CollectiveCase> paired_matrix(int size);

// Returns whether to test all combinations, which takes minutes under a sanitizer. Sanitizer builds return
// true only if the variable TEST_ALL is set, as `./dev test --all` does.
bool test_all();
// Returns the whole matrix if `test_all()` is true, and otherwise the part with all pairs.
std::vector<CollectiveCase> tested_matrix(int size);

}  // namespace tutti::test
