#include "transport/tcp/congestion.h"

#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <tutti/log.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "transport/meeting/socket.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {
namespace {

// Within a data centre a round trip takes less than this; between sites it takes longer.
constexpr std::chrono::microseconds near_round_trip{2000};

Descriptor any_socket() { return Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)); }

std::string system_default() {
  const Descriptor any = any_socket();
  return any ? congestion_of(any.get()) : std::string();
}

void warn_if_refused(const std::string& setting) {
  const Descriptor any = any_socket();
  if (!any || set_congestion(any.get(), setting)) return;
  log::warn("tcp: the kernel refuses the congestion control '", setting,
            "' (TUTTI_TCP_CONGESTION): ", error_text(errno), "; connections use the kernel's choice");
}

// Returns whether the address is a loopback, private (RFC 1918, RFC 4193) or link-local address.
bool looks_near(const SocketAddress& address) {
  if (address.is_loopback()) return true;
  if (address.family() == AF_INET) {
    const std::uint32_t bits = ntohl(reinterpret_cast<const sockaddr_in*>(address.raw())->sin_addr.s_addr);
    return bits >> 24 == 10 || bits >> 20 == 0xac1 || bits >> 16 == 0xc0a8 || bits >> 16 == 0xa9fe;
  }
  const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address.raw())->sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&six) || (six.s6_addr[0] & 0xfe) == 0xfc;
}

std::chrono::microseconds round_trip(int descriptor) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  return std::chrono::microseconds(info.tcpi_rtt);
}

}  // namespace

Congestion::Congestion(std::string setting) : setting_(std::move(setting)), system_(system_default()) {
  if (!setting_.empty() && setting_ != "system") warn_if_refused(setting_);
}

std::string Congestion::choose(const SocketAddress& address, bool same_host) const {
  if (setting_ == "system") return {};
  if (!setting_.empty()) return setting_;
  return same_host || looks_near(address) ? "reno" : "";
}

void Congestion::settle(int descriptor, bool same_host) const {
  const auto remote = meeting::remote_address(descriptor);
  if (!remote) return;
  std::string wanted = choose(*remote, same_host);
  if (setting_.empty() && !same_host && round_trip(descriptor) > near_round_trip) wanted = system_;
  if (wanted != congestion_of(descriptor)) set_congestion(descriptor, wanted);
}

}  // namespace tutti::tcp
