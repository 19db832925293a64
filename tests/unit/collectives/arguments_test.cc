// Tests the `Fingerprint` and the `Problem` that are made from a call before it starts, and the checks of its
// arguments.

#include "collectives/arguments.h"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr int size = 4;

struct Elements {
  std::array<float, 64> in{};
  std::array<float, 64> out{};
  Call call(CollectiveKind kind, std::size_t in_count, std::size_t out_count) {
    return {.kind = kind,
            .in = {in.data(), in_count, DataType::float32},
            .out = {out.data(), out_count, DataType::float32}};
  }
};

TEST(Fingerprint, IgnoresWhatMeansNothingForTheKind) {
  Elements elements;
  Call a = elements.call(CollectiveKind::all_gather, 8, 32);
  Call b = a;
  b.root = 1;
  b.op = &ReduceOp::max;
  b.out.data = nullptr;
  EXPECT_EQ(fingerprint(a, 0, size), fingerprint(b, 1, size));
  a = elements.call(CollectiveKind::barrier, 8, 8);
  EXPECT_EQ(fingerprint(a, 0, size), fingerprint(Call{}, 0, size));
}

TEST(Fingerprint, IsThatOfTheSidesThatARankHas) {
  Elements elements;
  Call call = elements.call(CollectiveKind::scatter, 32, 8);
  const Fingerprint at_root = fingerprint(call, 0, size);
  call.in = {};
  EXPECT_EQ(fingerprint(call, 1, size), at_root);
  call = elements.call(CollectiveKind::reduce, 8, 8);
  call.root = 2;
  const Fingerprint of_reduce = fingerprint(call, 2, size);
  call.out = {};
  EXPECT_EQ(fingerprint(call, 1, size), of_reduce);
}

TEST(Fingerprint, TellsDifferentCallsApart) {
  Elements elements;
  const Call base = elements.call(CollectiveKind::reduce, 8, 8);
  std::vector<Call> others(7, base);
  others[0].kind = CollectiveKind::broadcast;
  others[1].in.type = others[1].out.type = DataType::int32;
  others[2].in.count = 9;
  others[3].op = &ReduceOp::min;
  others[4].root = 1;
  others[5].part_of = Composite::split;
  others[6].in.memory = others[6].out.memory = Memory::cuda(0);
  for (const Call& other : others) EXPECT_FALSE(fingerprint(base, 0, size) == fingerprint(other, 0, size));
}

// Each rank may use a different device, so the fingerprint only says whether the memory is on a device. It
// ignores the memory of a buffer that the rank does not use, such as the input of a rank that receives a
// broadcast.
TEST(Fingerprint, HasTheKindOfMemoryOnly) {
  Elements elements;
  Call call = elements.call(CollectiveKind::broadcast, 8, 8);
  call.in.memory = call.out.memory = Memory::cuda(0);
  const Fingerprint at_root = fingerprint(call, 0, size);
  EXPECT_TRUE(at_root.on_device);
  call.in.memory = Memory();
  call.out.memory = Memory::cuda(5);
  EXPECT_EQ(fingerprint(call, 1, size), at_root);
  call.kind = CollectiveKind::barrier;
  EXPECT_FALSE(fingerprint(call, 1, size).on_device);
}

TEST(Fingerprint, DigestsOnlyCountsThatAllRanksKnow) {
  Elements elements;
  const std::vector<std::uint64_t> counts = {1, 2, 3, 4};
  Call call = elements.call(CollectiveKind::all_gather_v, 1, 10);
  call.out_counts = counts;
  EXPECT_EQ(fingerprint(call, 0, size).count, digest_of(counts));
  call = elements.call(CollectiveKind::reduce_scatter_v, 10, 1);
  call.in_counts = counts;
  EXPECT_EQ(fingerprint(call, 0, size).count, digest_of(counts));
  for (const auto kind :
       {CollectiveKind::all_to_all_v, CollectiveKind::gather_v, CollectiveKind::scatter_v}) {
    call.kind = kind;
    EXPECT_EQ(fingerprint(call, 0, size).count, 0u) << to_string(kind);
  }
}

TEST(Check, AwayFromTheRootARankKnowsItsOwnCountOnly) {
  Elements elements;
  const Call gather = elements.call(CollectiveKind::gather_v, 5, 0);
  const Result<Problem> gathered = check(gather, 3, size);
  ASSERT_TRUE(gathered.ok()) << gathered.status().to_string();
  ASSERT_EQ(gathered->output_counts.size(), 1u);
  EXPECT_EQ(gathered->output_counts.front(), 5u);
  EXPECT_EQ(input_count(*gathered), 5u);
  EXPECT_EQ(output_count(*gathered), 0u);
  const Call scatter = elements.call(CollectiveKind::scatter_v, 0, 6);
  const Result<Problem> scattered = check(scatter, 3, size);
  ASSERT_TRUE(scattered.ok()) << scattered.status().to_string();
  EXPECT_EQ(input_count(*scattered), 0u);
  EXPECT_EQ(output_count(*scattered), 6u);
}

TEST(Check, SeesWhatIsInPlaceAndRefusesWhatOverlaps) {
  Elements elements;
  Call call = elements.call(CollectiveKind::all_reduce, 8, 8);
  EXPECT_FALSE(check(call, 0, size)->in_place);
  call.in.data = elements.out.data();
  EXPECT_TRUE(check(call, 0, size)->in_place);
  call.in.data = elements.out.data() + 1;
  EXPECT_EQ(check(call, 0, size).status().code(), Code::invalid_argument);
  call = elements.call(CollectiveKind::all_gather, 8, 32);
  call.in.data = elements.out.data() + 16;
  EXPECT_TRUE(check(call, 2, size)->in_place);
  EXPECT_EQ(check(call, 1, size).status().code(), Code::invalid_argument);
}

TEST(Check, BothBuffersLieInTheSameMemory) {
  Elements elements;
  Call call = elements.call(CollectiveKind::all_reduce, 8, 8);
  call.out.memory = Memory::cuda(1);
  const Status mixed = check(call, 0, size).status();
  EXPECT_EQ(mixed.code(), Code::invalid_argument);
  EXPECT_EQ(mixed.message(), "in is memory of the host, out is memory of CUDA device 1");
  call.in.memory = Memory::cuda(0);
  EXPECT_EQ(check(call, 0, size).status().code(), Code::invalid_argument);
  call.in.memory = Memory::cuda(1);
  EXPECT_TRUE(check(call, 0, size).ok());
  call.kind = CollectiveKind::reduce;
  call.in.memory = Memory();
  EXPECT_TRUE(check(call, 1, size).ok());  // only the root has an output
}

TEST(Check, AMessageMayLieInAnyMemory) {
  float element = 0;
  Transfer transfer{Transfer::Direction::send, Buffer(&element, 1, DataType::float32), 1, 0};
  for (const Memory memory : {Memory(), Memory::cuda(0)}) {
    transfer.buffer.memory = memory;
    transfer.buffer.data = &element;
    EXPECT_TRUE(check(transfer, size).ok());
    transfer.buffer.data = nullptr;
    EXPECT_EQ(check(transfer, size).code(), Code::invalid_argument);
  }
}

TEST(Call, IsTheSameDownToThePointers) {
  Elements elements;
  const Call call = elements.call(CollectiveKind::reduce, 8, 8);
  EXPECT_TRUE(is_same(call, call));
  const ReduceOp half = ReduceOp::premultiplied_sum(0.5);
  const ReduceOp also_half = ReduceOp::premultiplied_sum(0.5);
  Call scaled = call;
  scaled.op = &half;
  EXPECT_FALSE(is_same(call, scaled));
  Call again = scaled;
  again.op = &also_half;
  EXPECT_TRUE(is_same(scaled, again));
  std::vector<Call> others(7, call);
  others[0].in.data = elements.in.data() + 1;
  others[1].out.count = 9;
  others[2].in.type = DataType::int32;
  others[3].root = 1;
  others[4].in_counts = others[4].out_counts = std::span<const std::uint64_t>(&others[0].in.count, 1);
  others[5].in.memory = Memory::cuda(0);
  others[6].out.memory = Memory::cuda(0);
  for (const Call& other : others) EXPECT_FALSE(is_same(call, other));
}

}  // namespace
}  // namespace tutti
