#include "bindings/torch/fork.h"

#include <c10/util/Exception.h>
#include <pthread.h>

namespace tutti_torch {
namespace {

void (*also_in_child)() = nullptr;

}  // namespace

std::atomic<std::uint32_t> forks_so_far{0};

void Birth::check() const {
  TORCH_CHECK_NOT_IMPLEMENTED(!forked_since(),
                              "tutti: a process group does not work in a forked child; call "
                              "init_process_group there anew");
}

void count_forks(void (*in_child)()) {
  also_in_child = in_child;
  // Fails only without memory; children must then not touch their parent's groups.
  static_cast<void>(pthread_atfork(nullptr, nullptr, [] {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);
    also_in_child();
  }));
}

}  // namespace tutti_torch
