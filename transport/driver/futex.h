#pragma once

#include <atomic>
#include <cstdint>

#include <tutti/deadline.h>

namespace tutti {

// `futex_wait` sleeps in the kernel while `word` holds `expected`, until it is woken or the deadline has
// passed. It may also return early, for example on a signal. std::atomic::wait has no deadline, so it cannot
// be used.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline deadline);
// `futex_wake` wakes one sleeper. It never reads `word`, so the word may have been destroyed already.
void futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace tutti
