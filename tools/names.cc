#include "tools/names.h"

#include <algorithm>

#include <tutti/config_values.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "core/edit_distance.h"

namespace tutti::tools {
namespace {

void append(std::string& names, std::string_view name) {
  if (!names.empty()) names += ", ";
  names += name;
}

}  // namespace

std::string type_names() {
  std::string names;
  for (int i = 0; i < data_type_count; ++i) append(names, to_string(static_cast<DataType>(i)));
  return names;
}

std::string op_names() {
  std::string names;
  for (int i = 0; i <= static_cast<int>(ReduceOp::Kind::bit_xor); ++i)
    append(names, to_string(static_cast<ReduceOp::Kind>(i)));
  return names;
}

std::string did_you_mean(const std::string& name, const std::string& known) {
  const std::size_t most_errors = std::max<std::size_t>(1, name.size() / 3);
  std::string nearest;
  std::size_t least = most_errors + 1;
  for (const std::string& candidate : parse_list(known)) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

std::string no_such(const std::string& what, const std::string& name, const std::string& known) {
  return "no such " + what + ": " + name + did_you_mean(name, known) + "; there are: " + known;
}

}  // namespace tutti::tools
