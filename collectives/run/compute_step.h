#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>

#include "collectives/run/run_binding.h"
#include "collectives/schedule/schedule.h"

namespace tutti {

// `compute_step` executes a step that moves nothing between ranks: a copy, a reduce, a scale or a divide. The
// step has `count` elements, which take `bytes` bytes. `address` returns the address of an operand of the
// step, and is called only for operands that the step has. Each executor determines addresses differently.
template <class AnyStep, class Address>
inline void compute_step(const AnyStep& step, std::size_t count, std::size_t bytes, const RunBinding& binding,
                         const Address& address) {
  switch (step.kind) {
    case StepKind::copy:
      std::memmove(address(step.out), address(step.left), bytes);
      break;
    case StepKind::reduce:
      binding.reducer(address(step.left), address(step.right), address(step.out), count);
      break;
    case StepKind::scale:
      scale(address(step.left), address(step.out), count, binding.reducer.type, binding.factor);
      break;
    default:
      assert(step.kind == StepKind::divide);
      divide(address(step.left), address(step.out), count, binding.reducer.type, binding.divisor);
  }
}

}  // namespace tutti
