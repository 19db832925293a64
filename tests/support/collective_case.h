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

// One collective with known inputs and a known answer: element i of rank r's input is a small whole number,
// so that every type holds every intermediate result exactly and the answer does not depend on the order of
// operations.
struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t count = 1;  // as Problem::count; for the _v kinds the largest block, others being smaller
  int root = 0;
  bool in_place = false;
  std::string algorithm = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(120);  // zero: the communicator's default

  std::string describe() const;
};

// Returns whether the collective has an in-place form in the API.
bool has_in_place(CollectiveKind kind);

// Takes the rightmost operand that is not zero: associative, not commutative, so only rank order gives its
// answer.
ReduceOp last_nonzero();

// The memory for a case's input and output, if they are not to have their own. It has `case_guard` spare
// bytes on both sides.
struct CaseMemory {
  std::span<std::byte> input = {};
  std::span<std::byte> output = {};
};
inline constexpr std::size_t case_guard = 64;

// The arguments of a case's call on one rank.
struct CaseCall {
  ConstBuffer in;
  Buffer out;
  std::span<const std::uint64_t> in_counts;  // one for each rank, or a single one
  std::span<const std::uint64_t> out_counts;
};

// Carries a case's call out and waits for it; throws `Error`. This one does so by the C++ interface.
using Perform = std::function<void(Communicator&, const CollectiveCase&, const CaseCall&)>;
void perform(Communicator& communicator, const CollectiveCase& test, const CaseCall& call);

// Runs it on this rank and checks the output, the bytes around it and the input. Returns an empty text if all
// is well, else what is wrong. Every rank of `communicator` calls it with an equal case.
std::string run_case(Communicator& communicator, const CollectiveCase& test, const CaseMemory& memory = {},
                     const Perform& by = perform);
// Does the same, but an operation that fails throws its `Error`.
std::string attempt_case(Communicator& communicator, const CollectiveCase& test,
                         const CaseMemory& memory = {}, const Perform& by = perform);

// The matrix: every kind with every type and operation that it has, in and out of place, at a few counts and
// with a moving root.
std::vector<CollectiveCase> collective_matrix(int size);

// Returns whether to take all combinations. It does not under a sanitizer, where they take minutes, unless
// TEST_ALL is set: `./dev test --all` does.
bool test_all();
// Returns the matrix, or covering pairs of it: each two values of kind, type, operation, count and place (in
// or out of place) that can be combined are combined at least once, separately for each size.
std::vector<CollectiveCase> tested_matrix(int size);

}  // namespace tutti::test
