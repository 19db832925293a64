#include "core/error_text.h"

#include <atomic>
#include <cerrno>
#include <system_error>

#include <sys/resource.h>

namespace tutti {

namespace {

std::atomic<std::uint64_t>& shortages() {
  static std::atomic<std::uint64_t> count;
  return count;
}

}  // namespace

std::uint64_t descriptor_shortages() { return shortages().load(); }

std::string error_text(int error) {
  std::string text = std::generic_category().message(error);
  if (error == EMFILE) {
    ++shortages();
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    text += ": this process has used up the " + std::to_string(limit.rlim_cur) +
            " file descriptors that it may have (RLIMIT_NOFILE, ulimit -n)";
  } else if (error == ENFILE) {
    text += ": this host has no file descriptors left (fs.file-max); a limit of the process is not to blame";
  } else if (error == EFBIG) {
    text += " for this process (RLIMIT_FSIZE, ulimit -f)";
  }
  return text;
}

}  // namespace tutti
