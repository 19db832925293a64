#include "transport/driver/time_slice.h"

#include <cstdint>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tutti {
namespace {

constexpr std::uint64_t shortest_slice = 100'000;  // nanoseconds; the kernel accepts no shorter slice

// `Attributes` is the kernel's `struct sched_attr`, in its first version. Older C libraries do not declare
// it.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // the length of a slice in nanoseconds; 0 on kernels that do not report it
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

}  // namespace

void shorten_time_slice() {
  thread_local bool has_asked = false;
  if (has_asked) return;
  has_asked = true;
  Attributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER || attributes.runtime <= shortest_slice) return;
  attributes.runtime = shortest_slice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);  // a refusal leaves the slice as it is
}

}  // namespace tutti
