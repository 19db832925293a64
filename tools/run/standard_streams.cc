#include "tools/run/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace tutti::tools {

void open_standard_streams() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

void discard_stream(int stream) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, stream);
  close(nothing);
}

}  // namespace tutti::tools
