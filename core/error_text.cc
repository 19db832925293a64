#include <cerrno>
#include <system_error>

#include <sys/resource.h>

#include <tutti/core/error_text.h>

namespace tutti {

std::string error_text(int error) {
  std::string text = std::generic_category().message(error);
  if (error == EMFILE) {
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    text += ": this process has used up the " + std::to_string(limit.rlim_cur) +
            " file descriptors that it may have (RLIMIT_NOFILE, ulimit -n)";
  } else if (error == ENFILE) {
    text += ": this host has no file descriptors left (fs.file-max); a limit of the process is not to blame";
  }
  return text;
}

}  // namespace tutti
