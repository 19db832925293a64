#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `open_new_file` opens a file to be written from the start. It is safe even if other users can guess the
// name. It creates the file, or empties an existing regular file. If the name belongs to a link (hard or
// symbolic), a pipe or a device, the call fails with `invalid_argument` and changes nothing.
Result<Descriptor> open_new_file(const std::string& path);

// `open_to_append` opens a file that is appended to, such as a log. It too is safe even if other users can
// guess the name. It follows links and opens pipes that belong to this user or to the system. For a link or
// pipe of another user, and for a pipe without a reader, it fails with `invalid_argument` at once.
Result<Descriptor> open_to_append(const std::string& path);

// While a `FileSizeSignalBlocked` lives, a write beyond the limit on file sizes (`ulimit -f`) only fails with
// EFBIG. SIGXFSZ is not delivered: by default it would end the program, and any handler for it belongs to the
// program. All of this holds only for the thread that creates the object.
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
