#include "core/descriptor_limit.h"

#include <cerrno>
#include <limits>
#include <memory>

#include <dirent.h>
#include <sys/resource.h>

namespace tutti {

std::uint64_t spare_descriptors() {
  constexpr std::uint64_t unlimited = std::numeric_limits<std::int64_t>::max();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir("/proc/self/fd"));
  if (folder == nullptr) return errno == EMFILE ? 0 : unlimited;
  std::uint64_t entries = 0;  // includes the folder's own descriptor, "." and ".."
  while (readdir(folder.get()) != nullptr) ++entries;
  const std::uint64_t taken = entries - 3 + limit.rlim_cur / 8;
  return taken < limit.rlim_cur ? limit.rlim_cur - taken : 0;
}

}  // namespace tutti
