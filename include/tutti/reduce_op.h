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

// A `ReduceOp` says how elements are combined. It is a small value that any thread may copy.
//
//   ReduceOp::sum product min max avg bit_and bit_or bit_xor
//   ReduceOp::premultiplied_sum(0.5)      the sum of all inputs, each times its rank's factor
//   ReduceOp::user("name", function, commutative)
//
// On `boolean`: sum and max are OR, product and min are AND, and the bit operations are logical. `avg`
// divides the sum by the number of ranks (integers: towards zero). `supports` returns whether an operation is
// defined on a type. If it is not, the call fails with `unsupported`. 16- and 8-bit floats are computed in
// float32 and rounded once per combination.
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

  // Writes out[i] = left[i] combined with right[i] for `count` elements. `out` may be `left` or `right`. The
  // function must be deterministic. The library calls it on any thread, and on several threads at once for
  // several operations. If it throws, the collective fails with `aborted` on all ranks, and the error
  // contains the exception's text and the rank. `state` is the pointer that was passed to `user`.
  using Function = void (*)(const void* left, const void* right, void* out, std::size_t count, DataType type,
                            void* state);
  struct User {
    std::string name;
    Function function;
    void* state;
    bool commutative;
  };

  static const ReduceOp sum, product, min, max, avg, bit_and, bit_or, bit_xor;
  // Multiplies each rank's input by that rank's factor, and adds the products. Integer products are truncated
  // towards zero and clamped to the type's range.
  static ReduceOp premultiplied_sum(double factor);
  // Makes an operation from a function. Every rank must pass the same function under the same name.
  // The function must be associative; a function that is not commutative is applied in rank order.
  // A collective with such an operation takes one more round of small messages, since it ends only
  // when all ranks have combined their elements. `state` must live until all operations that use it
  // have ended.
  static ReduceOp user(std::string name, Function function, bool commutative, void* state = nullptr);

  Kind kind() const { return kind_; }
  double factor() const { return factor_; }
  const User* user_function() const { return user_.get(); }
  bool commutative() const { return !user_ || user_->commutative; }
  // Returns whether this operation is defined on `type`.
  bool supports(DataType type) const;
  // Returns the name as it appears in messages: "sum", "premultiplied_sum(0.5)", "user(longest)".
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
// Returns the built-in operation of that name, or nothing if there is none. Operations with a parameter are
// not found.
TUTTI_API std::optional<ReduceOp> parse_reduce_op(std::string_view name);

}  // namespace tutti
