#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <tutti/address.h>

#include "core/descriptor.h"
#include "core/signals_blocked.h"

namespace tutti {

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return 0;
}

void SocketAddress::set_port(std::uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text, sizeof(text));
    return text;
  }
  if (family() != AF_INET6) return text;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  if (v6->sin6_scope_id == 0) return text;
  char name[IF_NAMESIZE] = "";
  if (if_indextoname(v6->sin6_scope_id, name) == nullptr)
    return std::string(text) + "%" + std::to_string(v6->sin6_scope_id);
  return std::string(text) + "%" + name;
}

std::string SocketAddress::text() const { return format_endpoint(host(), port()); }

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
  }
  if (family() != AF_INET6) return false;
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return address.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&address);
}

std::optional<SocketAddress> parse_address(const std::string& literal, std::uint16_t port) {
  std::string host = literal;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    address.length = sizeof(sockaddr_in);
    address.set_port(port);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::size_t percent = host.find('%');
  if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &v6->sin6_addr) != 1) return std::nullopt;
  v6->sin6_family = AF_INET6;
  address.length = sizeof(sockaddr_in6);
  address.set_port(port);
  if (percent != std::string::npos) {
    v6->sin6_scope_id = if_nametoindex(host.substr(percent + 1).c_str());
    if (v6->sin6_scope_id == 0) return std::nullopt;
  }
  return address;
}

struct Resolution::Lookup {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  Status failure;  // why the lookup could not be started
  int error = 0;
  int system_error = 0;
  std::vector<SocketAddress> addresses;

  void take(const addrinfo* list) {
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
      SocketAddress address;
      std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
      address.length = entry->ai_addrlen;
      addresses.push_back(address);
    }
  }
  // Resolves `host` on a separate thread, since getaddrinfo() cannot be cancelled and a slow name service
  // must not use up the caller's time. The caller may give up and go on before the thread ends, so the thread
  // touches only `lookup`.
  static void run(const std::shared_ptr<Lookup>& lookup, const std::string& host) {
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
    const int system_error = errno;
    const std::lock_guard lock(lookup->mutex);
    lookup->error = error;
    lookup->system_error = system_error;
    lookup->take(list);
    if (list != nullptr) freeaddrinfo(list);
    lookup->done = true;
    lookup->finished.notify_all();
  }
};

Resolution::Resolution(std::string host, std::uint16_t port)
    : host_(std::move(host)), port_(port), lookup_(std::make_shared<Lookup>()) {
  if (const std::optional<SocketAddress> literal = parse_address(host_, port)) {
    lookup_->addresses = {*literal};
    lookup_->done = true;
    return;
  }
  const SignalsBlocked blocked;
  try {
    std::thread([lookup = lookup_, name = host_] { Lookup::run(lookup, name); }).detach();
  } catch (const std::system_error& error) {
    lookup_->failure =
        Status(Code::resource_exhausted, "cannot start a thread to resolve '" + host_ + "': " + error.what());
    lookup_->done = true;
  }
}

std::optional<Resolution::Answer> Resolution::answer() const {
  const std::lock_guard lock(lookup_->mutex);
  if (!lookup_->done) return std::nullopt;
  return judge();
}

Resolution::Answer Resolution::wait(Deadline deadline) const {
  std::unique_lock lock(lookup_->mutex);
  const auto finished = [&] { return lookup_->done; };
  if (deadline.is_never()) {
    lookup_->finished.wait(lock, finished);
  } else if (!lookup_->finished.wait_until(lock, deadline.when(), finished)) {
    return Status(Code::unreachable,
                  "cannot resolve host name '" + host_ + "': the name service does not answer");
  }
  return judge();
}

Resolution::Answer Resolution::judge() const {
  if (!lookup_->failure.ok()) return lookup_->failure;
  if (lookup_->error != 0 || lookup_->addresses.empty()) {
    const std::string reason = lookup_->error == EAI_SYSTEM ? std::strerror(lookup_->system_error)
                               : lookup_->error != 0        ? gai_strerror(lookup_->error)
                                                            : "it has no internet address";
    return Status(Code::unreachable, "cannot resolve host name '" + host_ + "': " + reason);
  }
  std::vector<SocketAddress> addresses = lookup_->addresses;
  for (SocketAddress& address : addresses) address.set_port(port_);
  return addresses;
}

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port, Deadline deadline) {
  return Resolution(host, port).wait(deadline);
}

std::optional<SocketAddress> route_source(const SocketAddress& target) {
  const Descriptor probe(socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return std::nullopt;
  SocketAddress destination = target;
  if (destination.port() == 0) destination.set_port(9);  // connect() needs a port, and any port will do
  SocketAddress source;
  source.length = sizeof(source.storage);
  const bool found =
      connect(probe.get(), destination.raw(), destination.length) == 0 &&
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&source.storage), &source.length) == 0;
  if (!found) return std::nullopt;
  source.set_port(0);
  return source;
}

bool names_loopback(const std::string& host) {
  if (const std::optional<SocketAddress> literal = parse_address(host, 0)) return literal->is_loopback();
  return host == "localhost" || host.ends_with(".localhost") || host == "ip6-localhost";
}

std::string format_endpoint(const std::string& host, std::uint16_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace tutti
