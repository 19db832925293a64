#include "tools/bench/pattern.h"

#include <algorithm>
#include <cstring>

#include <tutti/float16.h>

#include "core/reduce.h"

namespace tutti::tools {
namespace {

constexpr std::uint64_t piece = 4096;  // a `Checker` compares this many elements at a time

// Hashes `value` so that neighbouring values have unrelated hashes. The code is the last step of
// the random number generator splitmix64.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// Returns the largest n such that the type represents every integer from 0 to n exactly.
std::uint64_t exact_integers(DataType type) {
  switch (type) {
    case DataType::float8_e5m2:
      return 8;
    case DataType::float8_e4m3:
      return 16;
    case DataType::bfloat16:
      return 256;
    case DataType::float16:
      return 2048;
    case DataType::float32:
      return std::uint64_t{1} << 24;
    default:
      return std::uint64_t{1} << 53;
  }
}

bool is_integer(DataType type) { return !is_floating(type) && type != DataType::boolean; }

template <class T>
void put(std::byte* out, std::uint64_t value) {
  const T element = static_cast<T>(value);
  std::memcpy(out, &element, sizeof element);
}

template <class T>
void put_narrow(std::byte* out, std::uint64_t value) {
  const T element(static_cast<float>(value));
  std::memcpy(out, &element, sizeof element);
}

void put(DataType type, std::byte* out, std::uint64_t value) {
  switch (type) {
    case DataType::boolean:
    case DataType::int8:
    case DataType::uint8:
      return put<std::uint8_t>(out, value);
    case DataType::int32:
    case DataType::uint32:
      return put<std::uint32_t>(out, value);
    case DataType::int64:
    case DataType::uint64:
      return put<std::uint64_t>(out, value);
    case DataType::float32:
      return put<float>(out, value);
    case DataType::float64:
      return put<double>(out, value);
    case DataType::float16:
      return put_narrow<float16>(out, value);
    case DataType::bfloat16:
      return put_narrow<bfloat16>(out, value);
    case DataType::float8_e4m3:
      return put_narrow<float8_e4m3>(out, value);
    case DataType::float8_e5m2:
      return put_narrow<float8_e5m2>(out, value);
  }
}

}  // namespace

Pattern::Pattern(DataType type, const ReduceOp& op, int ranks) : type_(type), op_(op), ranks_(ranks) {
  const bool product = op.kind() == ReduceOp::Kind::product;
  const bool order_matters = op.kind() == ReduceOp::Kind::sum || op.kind() == ReduceOp::Kind::avg || product;
  if (type == DataType::boolean) {
    values_ = 2;
  } else if (is_integer(type)) {
    values_ = 251;  // integer sums wrap around to the same value in every order
  } else if (product) {
    values_ = 0;
  } else {
    const std::uint64_t most = exact_integers(type) / (order_matters ? static_cast<std::uint64_t>(ranks) : 1);
    values_ = std::min<std::uint64_t>(most + 1, 1021);
    if (values_ < 2) values_ = 0;
  }
}

// Returns one element of a rank's input. If `values_` is 0, only one rank contributes at each
// index. In a product, that rank's element is 2 and the elements of all other ranks are 1. In other
// operations, that rank's element is 1 and those of all others are 0.
std::uint64_t Pattern::value(int rank, std::uint64_t index) const {
  const auto number = static_cast<std::uint64_t>(rank);
  if (values_ > 0) return mixed(index * 1000003 + number) % values_;
  const bool chosen = mixed(index) % static_cast<std::uint64_t>(ranks_) == number;
  return op_.kind() == ReduceOp::Kind::product ? 1 + chosen : chosen;
}

void Pattern::fill(int rank, std::uint64_t first, std::span<std::byte> out) const {
  const std::size_t size = size_of(type_);
  for (std::size_t i = 0; i < out.size() / size; ++i)
    put(type_, out.data() + i * size, value(rank, first + i));
}

void Pattern::fill_reduced(int first_rank, int last_rank, std::uint64_t first,
                           std::span<std::byte> out) const {
  const Reducer reducer(type_, op_);
  const std::size_t count = out.size() / size_of(type_);
  std::vector<std::byte> next(out.size());
  fill(first_rank, first, out);
  for (int rank = first_rank + 1; rank <= last_rank; ++rank) {
    fill(rank, first, next);
    reducer(out.data(), next.data(), out.data(), count);
  }
  if (op_.kind() == ReduceOp::Kind::avg) {
    divide(out.data(), out.data(), count, type_, static_cast<std::size_t>(ranks_));
  }
}

template <class Fill>
void Checker::compare(const std::byte* data, std::uint64_t count, std::uint64_t first, const Fill& fill) {
  const std::size_t size = size_of(pattern_.type());
  for (std::uint64_t done = 0; done < count; done += piece) {
    const std::uint64_t part = std::min(piece, count - done);
    expected_.resize(part * size);
    fill(first + done, std::span(expected_));
    const std::byte* actual = data + done * size;
    if (std::memcmp(actual, expected_.data(), expected_.size()) == 0) continue;
    for (std::uint64_t i = 0; i < part; ++i) {
      wrong_ += std::memcmp(actual + i * size, expected_.data() + i * size, size) != 0;
    }
  }
}

void Checker::expect_input(const std::byte* data, std::uint64_t count, int rank, std::uint64_t first) {
  compare(data, count, first,
          [&](std::uint64_t from, std::span<std::byte> out) { pattern_.fill(rank, from, out); });
}

void Checker::expect_reduced(const std::byte* data, std::uint64_t count, int first_rank, int last_rank,
                             std::uint64_t first) {
  compare(data, count, first, [&](std::uint64_t from, std::span<std::byte> out) {
    pattern_.fill_reduced(first_rank, last_rank, from, out);
  });
}

}  // namespace tutti::tools
