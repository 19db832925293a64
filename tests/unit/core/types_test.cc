#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/buffer.h>
#include <tutti/memory.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "core/fingerprint.h"

namespace tutti {
namespace {

void nothing(const void*, const void*, void*, std::size_t, DataType, void*) {}

TEST(Types, NamesComeBack) {
  std::set<std::string_view> names;
  for (int i = 0; i < data_type_count; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(to_string(type)), type);
    names.insert(to_string(type));
  }
  EXPECT_EQ(names.size(), std::size_t{data_type_count});
  for (int i = 0; i < collective_kind_count; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    EXPECT_EQ(parse_collective_kind(to_string(kind)), kind);
    names.insert(to_string(kind));
  }
  EXPECT_EQ(names.size(), std::size_t{data_type_count + collective_kind_count});
  EXPECT_EQ(to_string(DataType::boolean), "bool");
  EXPECT_FALSE(parse_data_type("float"));
  EXPECT_FALSE(parse_collective_kind(""));
  EXPECT_EQ(to_string(static_cast<DataType>(200)), "unknown");
}

TEST(ReduceOp, NamesComeBack) {
  for (const ReduceOp& op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg,
                             ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
    EXPECT_EQ(parse_reduce_op(op.name()), op);
    EXPECT_TRUE(op.commutative());
    EXPECT_EQ(op.user_function(), nullptr);
  }
  EXPECT_FALSE(parse_reduce_op("user"));
  EXPECT_FALSE(parse_reduce_op("premultiplied_sum"));
}

TEST(ReduceOp, PremultipliedSumCarriesItsFactor) {
  const ReduceOp half = ReduceOp::premultiplied_sum(0.5);
  EXPECT_EQ(half.kind(), ReduceOp::Kind::premultiplied_sum);
  EXPECT_EQ(half.factor(), 0.5);
  EXPECT_EQ(half.name(), "premultiplied_sum(0.5)");
  EXPECT_NE(half, ReduceOp::premultiplied_sum(0.25));
}

TEST(ReduceOp, UserFunctionsCompareByIdentity) {
  const ReduceOp op = ReduceOp::user("mine", nothing, false);
  ReduceOp copy = ReduceOp::sum;
  copy = op;
  EXPECT_EQ(op, copy);
  EXPECT_NE(op, ReduceOp::user("mine", nothing, false));
  EXPECT_FALSE(op.commutative());
  EXPECT_EQ(op.name(), "user(mine)");
  EXPECT_EQ(copy.user_function()->function, &nothing);
}

TEST(ReduceOp, SupportsWhatItIsDefinedOn) {
  EXPECT_FALSE(ReduceOp::avg.supports(DataType::boolean));
  EXPECT_FALSE(ReduceOp::premultiplied_sum(2).supports(DataType::boolean));
  EXPECT_TRUE(ReduceOp::sum.supports(DataType::boolean));
  EXPECT_TRUE(ReduceOp::bit_xor.supports(DataType::boolean));
  EXPECT_FALSE(ReduceOp::bit_and.supports(DataType::float8_e5m2));
  EXPECT_TRUE(ReduceOp::avg.supports(DataType::int32));
  EXPECT_TRUE(ReduceOp::user("mine", nothing, true).supports(DataType::boolean));
}

TEST(Buffer, TakesRangesOfElements) {
  std::vector<std::int32_t> numbers(5);
  const Buffer buffer(numbers);
  EXPECT_EQ(buffer.data, numbers.data());
  EXPECT_EQ(buffer.count, 5u);
  EXPECT_EQ(buffer.type, DataType::int32);
  EXPECT_EQ(buffer.bytes(), 20u);
  const std::array<double, 2> constants = {1, 2};
  const ConstBuffer input(constants);
  EXPECT_EQ(input.type, DataType::float64);
  EXPECT_EQ(ConstBuffer(buffer).data, numbers.data());
  static_assert(!std::is_constructible_v<Buffer, const std::vector<float>&>);
}

TEST(Buffer, IsHostMemoryUnlessItNamesAnother) {
  std::array<float, 2> numbers{};
  EXPECT_EQ(Buffer(numbers).memory, Memory());
  EXPECT_EQ(Buffer().memory.kind(), Memory::Kind::host);
  const Buffer there(numbers.data(), 2, DataType::float32, Memory::cuda(3));
  EXPECT_EQ(ConstBuffer(there).memory, Memory::cuda(3));
  EXPECT_EQ(there.memory.device(), 3);
  EXPECT_NE(Memory::cuda(3), Memory::cuda(2));
  EXPECT_NE(Memory::cuda(0), Memory());
  EXPECT_EQ(Memory::cuda(Memory::max_device).device(), Memory::max_device);
  EXPECT_EQ(to_string(Memory()), "memory of the host");
  EXPECT_EQ(to_string(Memory::cuda(3)), "memory of CUDA device 3");
}

TEST(Fingerprint, ReadsLikeTheCall) {
  Fingerprint call{.type = DataType::float32, .op = ReduceOp::Kind::max, .root = 2, .count = 1024};
  const auto read = [&call](CollectiveKind kind) {
    call.kind = kind;
    return to_string(call);
  };
  EXPECT_EQ(read(CollectiveKind::all_reduce), "all_reduce(count=1024, float32, max)");
  EXPECT_EQ(read(CollectiveKind::reduce), "reduce(count=1024, float32, max, root=2)");
  EXPECT_EQ(read(CollectiveKind::all_gather), "all_gather(count=1024, float32)");
  EXPECT_EQ(read(CollectiveKind::all_gather_v), "all_gather_v(counts=#0000000000000400, float32)");
  EXPECT_EQ(read(CollectiveKind::gather_v), "gather_v(float32, root=2)");
  EXPECT_EQ(read(CollectiveKind::barrier), "barrier()");
  call.algorithm = 3;
  EXPECT_EQ(read(CollectiveKind::broadcast), "broadcast(count=1024, float32, root=2, algorithm=3)");
  EXPECT_EQ(to_string(call, "binomial"), "broadcast(count=1024, float32, root=2, algorithm=binomial)");
  EXPECT_EQ(known_bytes(call), 4096u);
  call.on_device = true;
  EXPECT_EQ(read(CollectiveKind::gather_v), "gather_v(float32, root=2, algorithm=3, on a device)");
}

TEST(Fingerprint, APartOfAnotherCallReadsLikeThatCall) {
  const Fingerprint call{.kind = CollectiveKind::broadcast, .algorithm = 3, .part_of = Composite::split};
  EXPECT_EQ(to_string(call), "split()");
  EXPECT_EQ(name_of(call), "split");
  EXPECT_EQ(known_bytes(call), std::nullopt);
}

TEST(Fingerprint, HoldsEveryRankBesideTheCallThatItIsPartOf) {
  Fingerprint call;
  for (const int root : {-1, 0, max_ranks - 1}) {
    for (const Composite part_of : {Composite::none, Composite::allocate}) {
      for (const bool on_device : {false, true}) {
        call.root = root;
        call.on_device = on_device;
        call.part_of = part_of;
        EXPECT_EQ(call.root, root);
        EXPECT_EQ(call.on_device, on_device);
        EXPECT_EQ(call.part_of, part_of);
      }
    }
  }
}

// The digest must change if a count, the order of the counts or the number of counts changes.
TEST(Fingerprint, DigestsOfCountsDiffer) {
  std::set<std::uint64_t> digests;
  std::size_t total = 0;
  const auto add = [&](const std::vector<std::uint64_t>& counts) {
    EXPECT_EQ(digest_of(counts), digest_of(counts));
    digests.insert(digest_of(counts));
    ++total;
  };
  add({});
  add({0});
  add({0, 0});
  add({1, 2, 3});
  add({3, 2, 1});
  add({1, 2, 3, 0});
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (std::uint64_t j = 0; j < 100; ++j) add({i, j + 1000, 7});
  }
  for (int bit = 0; bit < 64; ++bit) add({std::uint64_t{1} << bit, 5});
  EXPECT_EQ(digests.size(), total);
}

}  // namespace
}  // namespace tutti
