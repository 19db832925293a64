#include <array>
#include <cstdio>

#include <tutti/reduce_op.h>

namespace tutti {
namespace {

constexpr std::array<std::string_view, 10> kind_names = {
    "sum", "product", "min", "max", "avg", "bit_and", "bit_or", "bit_xor", "premultiplied_sum", "user"};

}  // namespace

// These objects are constant-initialised, so that constructors of other static objects can use them.
constinit const ReduceOp ReduceOp::sum{Kind::sum};
constinit const ReduceOp ReduceOp::product{Kind::product};
constinit const ReduceOp ReduceOp::min{Kind::min};
constinit const ReduceOp ReduceOp::max{Kind::max};
constinit const ReduceOp ReduceOp::avg{Kind::avg};
constinit const ReduceOp ReduceOp::bit_and{Kind::bit_and};
constinit const ReduceOp ReduceOp::bit_or{Kind::bit_or};
constinit const ReduceOp ReduceOp::bit_xor{Kind::bit_xor};

ReduceOp ReduceOp::premultiplied_sum(double factor) {
  ReduceOp op(Kind::premultiplied_sum);
  op.factor_ = factor;
  return op;
}

ReduceOp ReduceOp::user(std::string name, Function function, bool commutative, void* state) {
  ReduceOp op(Kind::user);
  op.user_ = std::make_shared<const User>(User{std::move(name), function, state, commutative});
  return op;
}

bool ReduceOp::supports(DataType type) const {
  switch (kind_) {
    case Kind::avg:
    case Kind::premultiplied_sum:
      return type != DataType::boolean;
    case Kind::bit_and:
    case Kind::bit_or:
    case Kind::bit_xor:
      return !is_floating(type);
    default:
      return true;
  }
}

std::string ReduceOp::name() const {
  if (user_) return "user(" + user_->name + ")";
  if (kind_ != Kind::premultiplied_sum) return std::string(to_string(kind_));
  char text[64];
  std::snprintf(text, sizeof(text), "premultiplied_sum(%.17g)", factor_);
  return text;
}

std::string_view to_string(ReduceOp::Kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kind_names.size() ? kind_names[index] : "unknown";
}

std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  for (const ReduceOp* op : {&ReduceOp::sum, &ReduceOp::product, &ReduceOp::min, &ReduceOp::max,
                             &ReduceOp::avg, &ReduceOp::bit_and, &ReduceOp::bit_or, &ReduceOp::bit_xor}) {
    if (to_string(op->kind()) == name) return *op;
  }
  return std::nullopt;
}

}  // namespace tutti
