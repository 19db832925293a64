#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/export.h>
#include <tutti/types.h>

namespace tutti {

// A `ReduceOp` says how elements are combined. It is a small value: compare it with `kind()`, copy it freely.
//
//   ReduceOp::sum product min max avg bit_and bit_or bit_xor
//   ReduceOp::premultiplied_sum(0.5)      the sum of every rank's input times its factor
//   ReduceOp::user("name", function, commutative)
//
// For `boolean`, sum and max are OR, product and min are AND, the bit operations are logical, avg is invalid.
// `avg` divides the sum by the world size (integers: towards zero). Bit operations need an integer or boolean
// type.
class TUTTI_API ReduceOp {
 public:
  enum class Kind : std::uint8_t {
    sum,
    product,
    min,
    max,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    premultiplied_sum,
    user
  };

  // Writes out[i] = left[i] combined with right[i] for `count` elements. `out` may be `left` or `right`.
  // Must be deterministic. If it throws, the collective fails with `aborted` on all ranks, which read the
  // exception's text and the name of the rank. `state` is what was handed to `user`.
  using Function = void (*)(const void* left, const void* right, void* out, std::size_t count, DataType type,
                            void* state);
  struct User {
    std::string name;
    Function function;
    void* state;
    bool commutative;
  };

  static const ReduceOp sum, product, min, max, avg, bit_and, bit_or, bit_xor;
  static ReduceOp premultiplied_sum(double factor);
  // Every rank must pass the same function under the same name. Operations must be associative; those that
  // are not commutative are combined in rank order. Such a collective is over once all ranks have combined
  // their parts, which takes one more round of small messages.
  static ReduceOp user(std::string name, Function function, bool commutative, void* state = nullptr);

  Kind kind() const { return kind_; }
  double factor() const { return factor_; }
  const User* user_function() const { return user_.get(); }
  bool commutative() const { return !user_ || user_->commutative; }
  // Returns whether this operation is defined on `type`.
  bool supports(DataType type) const;
  std::string name() const;

  friend bool operator==(const ReduceOp& a, const ReduceOp& b) {
    return a.kind_ == b.kind_ && a.factor_ == b.factor_ && a.user_ == b.user_;
  }

 private:
  constexpr explicit ReduceOp(Kind kind) : kind_(kind) {}
  Kind kind_;
  double factor_ = 1.0;
  std::shared_ptr<const User> user_;
};

TUTTI_API std::string_view to_string(ReduceOp::Kind kind);
// The built-in operations without parameters, by name.
TUTTI_API std::optional<ReduceOp> parse_reduce_op(std::string_view name);

}  // namespace tutti
