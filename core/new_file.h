#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `open_new_file` creates a file, or empties an existing regular file, and opens it for writing. This is safe
// even if other users can guess the name. If the name belongs to a link (hard or symbolic), a pipe or a
// device, the call fails with `invalid_argument` and changes nothing.
Result<Descriptor> open_new_file(const std::string& path);

// `open_to_append` opens a file for appending, such as a log. This is safe even if other users can guess the
// name. It follows symbolic links and opens pipes, if they belong to this user or to the system. For a link
// or pipe of another user, for a file with several names (hard links), and for a pipe without a reader, it
// fails with `invalid_argument` at once.
Result<Descriptor> open_to_append(const std::string& path);

// While a `FileSizeSignalBlocked` lives, a write beyond the limit on file sizes (`ulimit -f`) fails with
// EFBIG, but no SIGXFSZ is delivered. By default this signal would end the program. The library installs no
// handler for it, since signal handlers belong to the program. The object affects only the thread that
// creates it.
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
