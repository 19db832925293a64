#include "bindings/torch/fork.h"

#include <atomic>

#include <c10/util/Exception.h>
#include <pthread.h>

namespace tutti_torch {
namespace {

std::atomic<std::uint32_t> forks_so_far{0};  // forks between the program's first process and this one
void (*also_in_child)() = nullptr;

}  // namespace

Birth::Birth() : born_(forks_so_far.load(std::memory_order_relaxed)) {}

bool Birth::forked_since() const { return born_ != forks_so_far.load(std::memory_order_relaxed); }

void Birth::check() const {
  TORCH_CHECK_NOT_IMPLEMENTED(!forked_since(),
                              "tutti: a process group does not work in a forked child; call "
                              "init_process_group in the child");
}

void count_forks(void (*in_child)()) {
  also_in_child = in_child;
  // pthread_atfork fails only if there is no memory. The error is ignored, although a child could
  // then use its parent's groups.
  static_cast<void>(pthread_atfork(nullptr, nullptr, [] {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);
    also_in_child();
  }));
}

}  // namespace tutti_torch
