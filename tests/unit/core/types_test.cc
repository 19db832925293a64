#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/buffer.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "core/collective_args.h"

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
  const ReduceOp copy = op;
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

CollectiveArgs args_of(CollectiveKind kind) {
  CollectiveArgs args;
  args.kind = kind;
  args.type = DataType::float32;
  args.count = 1024;
  args.op = ReduceOp::max;
  args.root = 2;
  return args;
}

TEST(Fingerprint, ReadsLikeTheCall) {
  EXPECT_EQ(to_string(fingerprint(args_of(CollectiveKind::all_reduce))),
            "all_reduce(count=1024, float32, max)");
  EXPECT_EQ(to_string(fingerprint(args_of(CollectiveKind::reduce))),
            "reduce(count=1024, float32, max, root=2)");
  EXPECT_EQ(to_string(fingerprint(args_of(CollectiveKind::all_gather))), "all_gather(count=1024, float32)");
  EXPECT_EQ(to_string(fingerprint(args_of(CollectiveKind::gather_v))), "gather_v(float32, root=2)");
  EXPECT_EQ(to_string(fingerprint(args_of(CollectiveKind::barrier))), "barrier()");
  CollectiveArgs broadcast = args_of(CollectiveKind::broadcast);
  broadcast.algorithm = 3;
  EXPECT_EQ(to_string(fingerprint(broadcast)), "broadcast(count=1024, float32, root=2, algorithm=3)");
  EXPECT_EQ(to_string(fingerprint(broadcast), "binomial"),
            "broadcast(count=1024, float32, root=2, algorithm=binomial)");
  broadcast.algorithm = static_cast<std::uint8_t>(Composite::split);
  EXPECT_EQ(to_string(fingerprint(broadcast)), "split()");
  EXPECT_EQ(name_of(fingerprint(broadcast)), "split");
  EXPECT_EQ(known_bytes(fingerprint(broadcast)), std::nullopt);
}

TEST(Fingerprint, IgnoresWhatMeansNothingForTheKind) {
  CollectiveArgs a = args_of(CollectiveKind::all_gather);
  CollectiveArgs b = a;
  b.root = 0;
  b.op = ReduceOp::sum;
  int dummy = 0;
  b.output = &dummy;
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  a = args_of(CollectiveKind::barrier);
  b = a;
  b.type = DataType::int8;
  b.count = 0;
  EXPECT_EQ(fingerprint(a), fingerprint(b));
}

TEST(Fingerprint, TellsDifferentCallsApart) {
  const CollectiveArgs base = args_of(CollectiveKind::reduce);
  std::vector<CollectiveArgs> others(6, base);
  others[0].kind = CollectiveKind::broadcast;
  others[1].type = DataType::int32;
  others[2].count = 1025;
  others[3].op = ReduceOp::min;
  others[4].root = 1;
  others[5].algorithm = 1;
  for (const CollectiveArgs& other : others) EXPECT_FALSE(fingerprint(base) == fingerprint(other));
}

// Any change to the counts, or to their order or number, must change the digest.
TEST(Fingerprint, DigestsTheCountsThatAllRanksKnow) {
  std::set<std::uint64_t> digests;
  std::size_t total = 0;
  const auto add = [&](const std::vector<std::uint64_t>& counts) {
    CollectiveArgs args = args_of(CollectiveKind::all_gather_v);
    args.output_counts = counts;
    const Fingerprint call = fingerprint(args);
    EXPECT_EQ(fingerprint(args), call);
    digests.insert(call.count);
    ++total;
    CollectiveArgs scatter = args_of(CollectiveKind::reduce_scatter_v);
    scatter.input_counts = counts;
    EXPECT_EQ(fingerprint(scatter).count, call.count);
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

  std::vector<std::uint64_t> counts = {1, 2};
  CollectiveArgs private_counts = args_of(CollectiveKind::all_to_all_v);
  private_counts.input_counts = counts;
  EXPECT_EQ(fingerprint(private_counts).count, 0u);
}

}  // namespace
}  // namespace tutti
