#include "transport/driver/futex.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/driver/timespec.h"

namespace tutti {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "a futex is a plain 32-bit word");

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline deadline) {
  if (deadline.is_never()) {
    futex(word, FUTEX_WAIT, expected, nullptr);
    return;
  }
  const auto left = deadline.remaining();
  if (left.count() == 0) return;
  const timespec timeout = timespec_of(left);
  futex(word, FUTEX_WAIT, expected, &timeout);
}

void futex_wake(const std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, 1, nullptr); }

}  // namespace tutti
