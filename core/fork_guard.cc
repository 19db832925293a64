#include "core/fork_guard.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tutti {

constinit std::atomic<std::uint32_t> forks_so_far{0};

namespace {

// A process has only one `Registry`, since fork() copies the whole process. The registry is never destroyed,
// since threads may still use it while the process exits.
struct Registry {
  // fork() waits for this mutex. So the mutex is held only while the containers change, and never during a
  // call that may wait for a thread that forks.
  std::mutex mutex;
  std::vector<int> descriptors;
  std::map<void*, std::size_t> memory;  // sizes in bytes, by start address

  Registry();
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

void after_fork_in_child() {
  Registry& all = registry();
  forks_so_far.fetch_add(1, std::memory_order_relaxed);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere >= 0) {
    for (const int descriptor : all.descriptors) dup3(nowhere, descriptor, O_CLOEXEC);
    close(nowhere);
  }
  all.descriptors.clear();
  for (const auto& [start, bytes] : all.memory) {
    // This replaces an existing mapping and reserves nothing, so it cannot fail for lack of resources.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    static_cast<void>(mmap(start, bytes, PROT_READ | PROT_WRITE, flags, -1, 0));
  }
  all.mutex.unlock();
}

Registry::Registry() {
  // This call fails only if memory has run out. Children then keep our sockets.
  static_cast<void>(pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                                   after_fork_in_child));
}

}  // namespace

void guard_descriptor(int descriptor) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.descriptors.push_back(descriptor);
}

void release_descriptor(int descriptor) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto at = std::find(all.descriptors.begin(), all.descriptors.end(), descriptor);
  if (at == all.descriptors.end()) return;  // this is a forked child, whose list was emptied
  *at = all.descriptors.back();
  all.descriptors.pop_back();
}

void guard_memory(void* start, std::size_t bytes) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.memory.emplace(start, bytes);
}

void release_memory(void* start) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.memory.erase(start);
}

}  // namespace tutti
