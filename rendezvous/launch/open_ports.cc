#include "rendezvous/launch/open_ports.h"

#include <atomic>

#include <tutti/address.h>
#include <tutti/log.h>

namespace tutti {

void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses) {
  static std::atomic_flag said;
  if (credentials != nullptr) return;
  for (const std::string& literal : addresses) {
    const std::optional<SocketAddress> address = parse_address(literal, 0);
    if (address && address->is_loopback()) continue;
    if (said.test_and_set()) return;
    log::warn(
        "this process listens on ", literal.empty() ? "all addresses" : literal,
        " without a token, so that any process that reaches the port may connect: start the ranks by "
        "`tutti run`, call tutti's own init with file://, or set TUTTI_TOKEN or TUTTI_TOKEN_FILE to the "
        "same secret on all of them");
    return;
  }
}

}  // namespace tutti
