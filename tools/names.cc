#include <tutti/core/reduce_op.h>
#include <tutti/core/types.h>
#include <tutti/tools/names.h>

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

}  // namespace tutti::tools
