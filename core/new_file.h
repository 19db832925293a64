#pragma once

#include <csignal>
#include <string>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `open_new_file` opens a file to be written anew, for a name that others may guess: it is made, or emptied
// if it is a regular file. A link, a pipe or a device that somebody has put there is `invalid_argument`, and
// left alone.
Result<Descriptor> open_new_file(const std::string& path);

// While a `FileSizeSignalBlocked` lives, a write beyond the limit on file sizes (`ulimit -f`) is the error
// EFBIG and nothing else: the signal that comes with it, SIGXFSZ, would end the program, whose handlers are
// not ours to change. For the thread that makes it.
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

}  // namespace tutti
