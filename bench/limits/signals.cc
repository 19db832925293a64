#include "bench/limits/signals.h"

#include <atomic>
#include <climits>
#include <new>

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/limits/process.h"
#include "bench/limits/timing.h"

namespace tutti::perf {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

struct alignas(128) Flag {
  std::atomic<int> value{0};

  void set(int to, Waiting how) {
    value.store(to, std::memory_order_release);
    if (how == Waiting::futex) syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  // Waits until the value is no longer `old`, and returns the new value.
  int await(int old, Waiting how) {
    int now = value.load(std::memory_order_acquire);
    while (now == old) {
      if (how == Waiting::futex) {
        syscall(SYS_futex, &value, FUTEX_WAIT, old, nullptr, nullptr, 0);
      } else if (how == Waiting::yield) {
        sched_yield();
      } else {
        relax();
      }
      now = value.load(std::memory_order_acquire);
    }
    return now;
  }
};

struct Shared {
  Flag there;
  Flag back;
};

// `Mapped` holds a `Shared` in memory that forked children share. The destructor unmaps it.
class Mapped {
 public:
  Mapped() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    shared_ = new (memory) Shared;
  }
  ~Mapped() { munmap(shared_, sizeof(Shared)); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  Shared* operator->() { return shared_; }

 private:
  Shared* shared_;
};

}  // namespace

double cache_line_pingpong(Waiting how) {
  Mapped shared;
  const Child child([&] {
    for (int turn = 0;;) {
      turn = shared->there.await(turn, how);
      shared->back.set(turn, how);
    }
  });
  int turn = 0;
  const double time = time_of(
      [&] {
        shared->there.set(turn + 1, how);
        turn = shared->back.await(turn, how);
      },
      50);
  return time / 2 * 1e6;
}

double cache_line_exchange() {
  Mapped shared;
  const Child child([&] {
    for (int turn = 0;; ++turn) {
      shared->back.set(turn + 1, Waiting::spin);
      shared->there.await(turn, Waiting::spin);
    }
  });
  int turn = 0;
  const double time = time_of(
      [&] {
        shared->there.set(turn + 1, Waiting::spin);
        shared->back.await(turn, Waiting::spin);
        ++turn;
      },
      50);
  return time * 1e6;
}

}  // namespace tutti::perf
