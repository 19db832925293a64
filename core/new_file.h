#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `open_new_file` opens a file to be written from the start, for a name that other users may guess. The file
// is created, or emptied if it is a regular file. If there is a link (hard or symbolic), a pipe or a device,
// the call fails with `invalid_argument` and does not touch it.
Result<Descriptor> open_new_file(const std::string& path);

// `open_to_append` does the same for a file that is appended to, such as a log. It follows links and opens
// pipes of this user and of the system. For those of another user, and for a pipe without a reader, it fails
// with `invalid_argument` at once.
Result<Descriptor> open_to_append(const std::string& path);

// While a `FileSizeSignalBlocked` lives, a write beyond the limit on file sizes (`ulimit -f`) is the error
// EFBIG and nothing else: the signal that comes with it, SIGXFSZ, would end the program, and its handlers
// belong to the program. It concerns only the thread that creates it.
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

// Writes all of the text, while SIGXFSZ is blocked. Returns 0 or an errno value.
int write_all(int descriptor, std::string_view text);

}  // namespace tutti
