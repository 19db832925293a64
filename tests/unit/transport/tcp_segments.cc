#include "tests/unit/transport/tcp_segments.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tutti::tcp {

std::uint32_t segments_sent(int descriptor) {
  tcp_info info{};
  socklen_t length = sizeof info;
  static_cast<void>(getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length));
  return info.tcpi_data_segs_out;
}

}  // namespace tutti::tcp
