#include "core/reduce.h"

#include <exception>

namespace tutti {
namespace {

const KernelTable& best() { return *runnable_kernels().front(); }

}  // namespace

ReduceKernel reduce_kernel(DataType type, ReduceOp::Kind op) {
  return best().combine[static_cast<int>(type)][static_cast<int>(op)];
}

void Reducer::by_user(const void* left, const void* right, void* out, std::size_t count) const {
  if (failed()) return;
  try {
    user->function(left, right, out, count, type, user->state);
  } catch (const std::exception& error) {
    if (failure == nullptr) throw;
    *failure = Status(Code::aborted, "its operation \"" + user->name + "\" failed: " + error.what());
  } catch (...) {
    if (failure == nullptr) throw;
    *failure = Status(Code::aborted,
                      "its operation \"" + user->name + "\" threw something that is not a std::exception");
  }
}

void scale(const void* in, void* out, std::size_t count, DataType type, double factor) {
  if (const ScaleKernel kernel = best().scale[static_cast<int>(type)]) kernel(in, out, count, factor);
}

void divide(const void* in, void* out, std::size_t count, DataType type, std::size_t divisor) {
  if (const DivideKernel kernel = best().divide[static_cast<int>(type)]) kernel(in, out, count, divisor);
}

const char* reduce_isa() { return best().isa; }

}  // namespace tutti
