#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `open_new_file` opens a file to be written from scratch, for a name that others may guess: it is made, or
// emptied if it is a regular file. A link (hard or symbolic), a pipe or a device that another process has put
// there is `invalid_argument`, and left alone.
Result<Descriptor> open_new_file(const std::string& path);

// `open_to_append` does the same for a file that is appended to, such as a log. It follows a link, and opens
// a pipe, of this user's or the system's. One of another user's, or a pipe that no process reads, is
// `invalid_argument`, at once.
Result<Descriptor> open_to_append(const std::string& path);

// While a `FileSizeSignalBlocked` lives, a write beyond the limit on file sizes (`ulimit -f`) is the error
// EFBIG and nothing else: the signal that comes with it, SIGXFSZ, would end the program, whose handlers are
// not ours to change. It only affects the thread that creates it.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked();
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

// Writes all of the text, while SIGXFSZ is blocked. Returns 0 or an errno.
int write_all(int descriptor, std::string_view text);

}  // namespace tutti
