#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tutti/export.h>

namespace tutti {

// `max_ranks` is the largest world size. The limit keeps tables of ranks small enough for memory, and catches
// mistyped world sizes.
inline constexpr int max_ranks = 1 << 20;

// A `DataType` is the type of a buffer's elements; `boolean` is one byte, and any value but 0 is true.
enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  boolean,
  float8_e4m3,
  float8_e5m2,
};
inline constexpr int data_type_count = 13;

// Returns the size of one element in bytes: 1, 2, 4 or 8.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::boolean:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return 1;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return 8;
  }
  return 1;
}

constexpr bool is_floating(DataType type) {
  switch (type) {
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::float32:
    case DataType::float64:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return true;
    default:
      return false;
  }
}

// Returns whether `type` is one of the enumerators, and not another number that was cast to the type.
constexpr bool is_data_type(DataType type) { return static_cast<int>(type) < data_type_count; }

// These functions convert a type to its name ("int8" ... "float64", "bool", "float8_e4m3", "float8_e5m2") and
// back. `parse_data_type` returns nothing for an unknown name.
TUTTI_API std::string_view to_string(DataType type);
TUTTI_API std::optional<DataType> parse_data_type(std::string_view name);

// A `CollectiveKind` names an operation of `Communicator`: a collective, or `send` or `recv`.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  all_gather_v,
  reduce_scatter,
  reduce_scatter_v,
  all_to_all,
  all_to_all_v,
  gather,
  gather_v,
  scatter,
  scatter_v,
  scan,
  exscan,
  barrier,
  send,
  recv,
};
inline constexpr int collective_kind_count = 18;

// These functions return whether the collective reduces elements, and whether it has a root.
TUTTI_API bool is_reduction(CollectiveKind kind);
TUTTI_API bool has_root(CollectiveKind kind);
// These functions convert a kind to its name ("all_reduce") and back. `parse_collective_kind` returns nothing
// for an unknown name.
TUTTI_API std::string_view to_string(CollectiveKind kind);
TUTTI_API std::optional<CollectiveKind> parse_collective_kind(std::string_view name);

}  // namespace tutti
