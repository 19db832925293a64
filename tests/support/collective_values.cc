#include "tests/support/collective_values.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <tutti/float16.h>

#include "core/reduce.h"

namespace tutti::test {

namespace {

// Elements are computed in batches of this size, which fit on the stack and into the first-level cache.
constexpr std::size_t batch = 1024;

template <class Visit>
void with_type(DataType type, Visit visit) {
  switch (type) {
    case DataType::int8:
      return visit(std::int8_t{});
    case DataType::uint8:
      return visit(std::uint8_t{});
    case DataType::int32:
      return visit(std::int32_t{});
    case DataType::uint32:
      return visit(std::uint32_t{});
    case DataType::int64:
      return visit(std::int64_t{});
    case DataType::uint64:
      return visit(std::uint64_t{});
    case DataType::float16:
      return visit(float16{});
    case DataType::bfloat16:
      return visit(bfloat16{});
    case DataType::float32:
      return visit(float{});
    case DataType::float64:
      return visit(double{});
    case DataType::boolean:
      return visit(bool{});
    case DataType::float8_e4m3:
      return visit(float8_e4m3{});
    case DataType::float8_e5m2:
      return visit(float8_e5m2{});
  }
}

void put(DataType type, std::byte* to, const double* values, std::size_t count) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T elements[batch];
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        elements[i] = static_cast<T>(values[i]);
      } else {
        elements[i] = T(static_cast<float>(values[i]));
      }
    }
    std::memcpy(to, elements, count * sizeof(T));
  });
}

// Returns the upper limit of all inputs. It is so small that the sum of the inputs over all ranks is exact.
std::uint64_t value_range(DataType type) {
  switch (type) {
    case DataType::boolean:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return 2;
    case DataType::int8:
    case DataType::uint8:
      return 8;
    case DataType::float16:
    case DataType::bfloat16:
      return 15;
    default:
      return 1009;
  }
}

void input_values(const CollectiveCase& test, double* to, int rank, std::uint64_t first, std::size_t count,
                  int size) {
  const auto r = static_cast<std::uint64_t>(rank);
  if (test.op.kind() == ReduceOp::Kind::product && is_reduction(test.kind)) {
    const auto p = static_cast<std::uint64_t>(size);
    for (std::size_t i = 0; i < count; ++i) to[i] = (first + i) % p == r ? 2 : 1;
    return;
  }
  const std::uint64_t range = value_range(test.type);
  const bool halved = test.op.kind() == ReduceOp::Kind::premultiplied_sum && test.type == DataType::int8;
  const std::uint64_t divisor = halved ? 2 : 1;
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint64_t i = first + k;
    to[k] = static_cast<double>((r * 7 + i * 3 + i / 64) % range / divisor);
  }
}

template <class Operation>
void each(double* a, const double* b, std::size_t count, Operation operation) {
  for (std::size_t i = 0; i < count; ++i) a[i] = operation(a[i], b[i]);
}

template <class Operation>
void each_bits(double* a, const double* b, std::size_t count, Operation operation) {
  each(a, b, count, [&](double x, double y) {
    return static_cast<double>(operation(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
  });
}

// Computes a = a op b.
void combine(const CollectiveCase& test, double* a, const double* b, std::size_t count) {
  const auto larger = [](double x, double y) { return std::max(x, y); };
  switch (test.op.kind()) {
    case ReduceOp::Kind::sum:
    case ReduceOp::Kind::avg:
    case ReduceOp::Kind::premultiplied_sum:
      if (test.type == DataType::boolean) return each(a, b, count, larger);
      return each(a, b, count, [](double x, double y) { return x + y; });
    case ReduceOp::Kind::product:
      return each(a, b, count, [](double x, double y) { return x * y; });
    case ReduceOp::Kind::min:
      return each(a, b, count, [](double x, double y) { return std::min(x, y); });
    case ReduceOp::Kind::max:
      return each(a, b, count, larger);
    case ReduceOp::Kind::bit_and:
      return each_bits(a, b, count, [](auto x, auto y) { return x & y; });
    case ReduceOp::Kind::bit_or:
      return each_bits(a, b, count, [](auto x, auto y) { return x | y; });
    case ReduceOp::Kind::bit_xor:
      return each_bits(a, b, count, [](auto x, auto y) { return x ^ y; });
    case ReduceOp::Kind::user:
      return each(a, b, count, [](double x, double y) { return y != 0 ? y : x; });
  }
}

// Writes at most `batch` elements for `fill_reduced`.
void put_reduced(const CollectiveCase& test, std::byte* to, std::uint64_t first, std::size_t count, int end,
                 int size) {
  const double factor = test.op.kind() == ReduceOp::Kind::premultiplied_sum ? test.op.factor() : 1;
  double total[batch];
  double next[batch];
  for (int rank = 0; rank < end; ++rank) {
    double* const values = rank == 0 ? total : next;
    input_values(test, values, rank, first, count, size);
    for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
    if (rank > 0) combine(test, total, next, count);
  }
  put(test.type, to, total, count);
  if (test.op.kind() == ReduceOp::Kind::avg) divide(to, to, count, test.type, static_cast<std::size_t>(size));
}

}  // namespace

void fill_input(const CollectiveCase& test, std::byte* to, int rank, std::uint64_t first, std::uint64_t count,
                int size) {
  double values[batch];
  for (std::uint64_t done = 0; done < count; done += batch) {
    const std::size_t some = std::min<std::uint64_t>(batch, count - done);
    input_values(test, values, rank, first + done, some, size);
    put(test.type, to + done * size_of(test.type), values, some);
  }
}

void fill_reduced(const CollectiveCase& test, std::byte* to, std::uint64_t first, std::uint64_t count,
                  int end, int size) {
  for (std::uint64_t done = 0; done < count; done += batch) {
    const std::size_t some = std::min<std::uint64_t>(batch, count - done);
    put_reduced(test, to + done * size_of(test.type), first + done, some, end, size);
  }
}

}  // namespace tutti::test
