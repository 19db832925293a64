#include "tools/run/watch.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tutti::tools {

Watch::Watch(std::chrono::nanoseconds patience) : patience_(patience), heard_(Deadline::Clock::now()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  signs_ = Descriptor(ends[0]);
  giver_ = Descriptor(ends[1]);
}

// Ignores a full pipe: the other process has not read for a long time, and the pipe already holds
// enough signs.
void Watch::give_sign(std::chrono::nanoseconds patience) {
  const std::int64_t sign = patience.count();
  static_cast<void>(write(giver_.get(), &sign, sizeof sign) == sizeof sign);
}

bool Watch::is_overdue() {
  std::int64_t sign = 0;
  while (read(signs_.get(), &sign, sizeof sign) == sizeof sign) {
    patience_ = std::chrono::nanoseconds(sign);
    heard_ = Deadline::Clock::now();
  }
  return Deadline::Clock::now() - heard_ > patience_;
}

}  // namespace tutti::tools
