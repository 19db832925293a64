// Tests every collective, type and operation through the C interface. A plain computation gives the right
// answers.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/c.h>

#include "bindings/c/handles.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"

namespace tutti::test {
namespace {

using Kind = CollectiveKind;

// `take_last_nonzero` is the C version of `last_nonzero`: its result is the last operand that is not zero.
int take_last_nonzero(const void* left, const void* right, void* out, size_t count, tutti_data_type type,
                      void* state) {
  ++*static_cast<std::atomic<int>*>(state);
  const size_t size = tutti_data_type_size(type);
  for (size_t i = 0; i < count; ++i) {
    const char* r = static_cast<const char*>(right) + i * size;
    const char* l = static_cast<const char*>(left) + i * size;
    const bool zero = std::string_view(r, size).find_first_not_of('\0') == std::string_view::npos;
    std::memmove(static_cast<char*>(out) + i * size, zero ? l : r, size);
  }
  return TUTTI_OK;
}

std::atomic<int> calls_of_user_function = 0;

tutti_op c_op(const ReduceOp& op) {
  tutti_op made = nullptr;
  switch (op.kind()) {
    case ReduceOp::Kind::sum:
      return TUTTI_SUM;
    case ReduceOp::Kind::product:
      return TUTTI_PRODUCT;
    case ReduceOp::Kind::min:
      return TUTTI_MIN;
    case ReduceOp::Kind::max:
      return TUTTI_MAX;
    case ReduceOp::Kind::avg:
      return TUTTI_AVG;
    case ReduceOp::Kind::bit_and:
      return TUTTI_BIT_AND;
    case ReduceOp::Kind::bit_or:
      return TUTTI_BIT_OR;
    case ReduceOp::Kind::bit_xor:
      return TUTTI_BIT_XOR;
    case ReduceOp::Kind::premultiplied_sum:
      EXPECT_EQ(tutti_op_create_premultiplied_sum(op.factor(), &made), TUTTI_OK);
      return made;
    case ReduceOp::Kind::user:
      EXPECT_EQ(tutti_op_create_user("last_nonzero", take_last_nonzero, 0, &calls_of_user_function, &made),
                TUTTI_OK);
      return made;
  }
  return made;
}

// Calls the collective of the case with all of its arguments. The call returns a work handle only if `work`
// is not null.
int call(tutti_comm* comm, const CollectiveCase& test, const CaseCall& with, tutti_op op, tutti_work** work) {
  tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
  options.timeout_ns = 120'000'000'000;
  if (!test.algorithm.empty()) options.algorithm = test.algorithm.c_str();
  const void* in = with.in.data;
  void* out = with.out.data;
  const size_t in_count = with.in.count;
  const size_t out_count = with.out.count;
  const auto type = static_cast<tutti_data_type>(test.type);
  const int root = test.root;
  const std::uint64_t* in_counts = with.in_counts.data();
  const std::uint64_t* out_counts = with.out_counts.data();
  const void* whole = test.in_place ? TUTTI_IN_PLACE : in;
  switch (test.kind) {
    case Kind::all_reduce:
      return tutti_all_reduce(comm, whole, out, out_count, type, op, &options, work);
    case Kind::reduce:
      return tutti_reduce(comm, in, out, in_count, type, op, root, &options, work);
    case Kind::broadcast:
      return tutti_broadcast(comm, out, out_count, type, root, &options, work);
    case Kind::all_gather:
      return tutti_all_gather(comm, whole, out, in_count, type, &options, work);
    case Kind::all_gather_v:
      return tutti_all_gather_v(comm, in, out, out_counts, type, &options, work);
    case Kind::reduce_scatter:
      return tutti_reduce_scatter(comm, in, out, out_count, type, op, &options, work);
    case Kind::reduce_scatter_v:
      return tutti_reduce_scatter_v(comm, in, out, in_counts, type, op, &options, work);
    case Kind::all_to_all:
      return tutti_all_to_all(comm, whole, out, with.in_counts[0], type, &options, work);
    case Kind::all_to_all_v:
      return tutti_all_to_all_v(comm, in, in_counts, out, out_counts, type, &options, work);
    case Kind::gather:
      return tutti_gather(comm, in, out, in_count, type, root, &options, work);
    case Kind::gather_v:
      return tutti_gather_v(comm, in, in_count, out, out_counts, type, root, &options, work);
    case Kind::scatter:
      return tutti_scatter(comm, in, out, out_count, type, root, &options, work);
    case Kind::scatter_v:
      return tutti_scatter_v(comm, in, in_counts, out, out_count, type, root, &options, work);
    case Kind::scan:
      return tutti_scan(comm, whole, out, out_count, type, op, &options, work);
    case Kind::exscan:
      return tutti_exscan(comm, whole, out, out_count, type, op, &options, work);
    default:
      return tutti_barrier(comm, &options, work);
  }
}

// Performs the call. A call with an even count asks for a work handle and waits for it. A call with an odd
// count blocks.
void perform_in_c(tutti_comm* comm, const CollectiveCase& test, const CaseCall& with) {
  const std::unique_ptr<const tutti_op_object, decltype(&tutti_op_free)> op(c_op(test.op), tutti_op_free);
  tutti_work* work = nullptr;
  const bool blocking = test.count % 2 != 0;
  int code = call(comm, test, with, op.get(), blocking ? nullptr : &work);
  if (code == TUTTI_OK && !blocking) code = tutti_work_wait(work);
  tutti_work_free(work);
  if (code != TUTTI_OK) throw Error(Status(static_cast<Code>(code), tutti_error_message()));
}

class CCollectives : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CCollectives, EveryKindTypeAndOperation) {
  const auto& [transport, size] = GetParam();
  Cluster ranks(size, {.transport = transport});
  const std::vector<CollectiveCase> cases = tested_matrix(size);
  ranks.run([&](Communicator& communicator) {
    tutti_comm comm{std::move(communicator)};
    const Perform by = [&](Communicator&, const CollectiveCase& test, const CaseCall& with) {
      perform_in_c(&comm, test, with);
    };
    for (const CollectiveCase& test : cases) {
      const std::string wrong = run_case(comm.communicator, test, {}, by);
      ASSERT_EQ(wrong, "");
    }
    communicator = std::move(comm.communicator);
  });
  EXPECT_TRUE(size == 1 || calls_of_user_function > 0);
}

INSTANTIATE_TEST_SUITE_P(All, CCollectives,
                         testing::Combine(testing::Values("inproc", "tcp", "shm"), testing::Values(1, 2, 3)),
                         [](const auto& parameter) {
                           return std::get<0>(parameter.param) + "_" +
                                  std::to_string(std::get<1>(parameter.param));
                         });

}  // namespace
}  // namespace tutti::test
