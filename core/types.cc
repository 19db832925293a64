#include <array>

#include <tutti/types.h>

namespace tutti {
namespace {

constexpr std::array<std::string_view, data_type_count> data_type_names = {
    "int8",     "uint8",   "int32",   "uint32", "int64",       "uint64",     "float16",
    "bfloat16", "float32", "float64", "bool",   "float8_e4m3", "float8_e5m2"};

constexpr std::array<std::string_view, collective_kind_count> collective_kind_names = {
    "all_reduce",       "reduce",     "broadcast",    "all_gather", "all_gather_v", "reduce_scatter",
    "reduce_scatter_v", "all_to_all", "all_to_all_v", "gather",     "gather_v",     "scatter",
    "scatter_v",        "scan",       "exscan",       "barrier",    "send",         "recv"};

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "unknown";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(DataType type) { return name_of(data_type_names, type); }

std::optional<DataType> parse_data_type(std::string_view name) {
  return value_of<DataType>(data_type_names, name);
}

std::string_view to_string(CollectiveKind kind) { return name_of(collective_kind_names, kind); }

std::optional<CollectiveKind> parse_collective_kind(std::string_view name) {
  return value_of<CollectiveKind>(collective_kind_names, name);
}

bool is_reduction(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_v:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      return true;
    default:
      return false;
  }
}

bool has_root(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::gather:
    case CollectiveKind::gather_v:
    case CollectiveKind::scatter:
    case CollectiveKind::scatter_v:
      return true;
    default:
      return false;
  }
}

}  // namespace tutti
