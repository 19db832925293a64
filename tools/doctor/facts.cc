#include "tools/doctor/facts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <tutti/address.h>
#include <tutti/version.h>

#include "core/descriptor.h"
#include "rendezvous/launch/interfaces.h"
#include "tools/processors.h"

namespace tutti::tools::doctor {
namespace {

namespace fs = std::filesystem;

// Returns the sorted names in a folder. The result is empty if there is no such folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Finds the first line of the file that begins with `key`. Returns the rest of that line, without
// the blanks and colons after `key`.
std::string value_in(const std::string& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t value = line.find_first_not_of(" \t:", key.size());
    return value == line.npos ? "" : line.substr(value);
  }
  return {};
}

std::uint64_t soft_limit(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return limit.rlim_cur;
}

int bits_of(const sockaddr* mask) {
  const auto* bytes =
      mask->sa_family == AF_INET
          ? reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
          : reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
  int bits = 0;
  for (int i = 0; i < (mask->sa_family == AF_INET ? 4 : 16); ++i) bits += std::popcount(bytes[i]);
  return bits;
}

// Maps each literal address of this host to the number of bits in its network prefix.
std::map<std::string, int> find_prefixes() {
  std::map<std::string, int> prefixes;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return prefixes;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.length);
    prefixes[address.host()] = bits_of(entry->ifa_netmask);
  }
  freeifaddrs(list);
  return prefixes;
}

int mtu_of(const std::string& interface) {
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(any.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

std::int64_t speed_of(const std::string& interface) {
  std::int64_t speed = 0;
  std::ifstream("/sys/class/net/" + interface + "/speed") >> speed;
  return std::max<std::int64_t>(speed, 0);  // the kernel gives -1 if the speed is unknown
}

std::vector<InterfaceFacts> look_at_interfaces() {
  std::vector<InterfaceFacts> facts;
  const Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return facts;
  const std::map<std::string, int> prefixes = find_prefixes();
  for (const Interface& interface : *all) {
    InterfaceFacts& one = facts.emplace_back();
    one.name = interface.name;
    one.loopback = interface.loopback;
    one.mtu = mtu_of(interface.name);
    if (!one.loopback) one.speed = speed_of(interface.name);
    for (const SocketAddress& address : interface.addresses) {
      const auto prefix = prefixes.find(address.host());
      one.addresses.push_back(
          {.address = address.host(), .prefix = prefix == prefixes.end() ? 0 : prefix->second});
    }
  }
  return facts;
}

void look_at_shm(HostFacts& facts) {
  struct statvfs shm {};
  std::error_code ignored;
  if (!fs::is_directory("/dev/shm", ignored) || statvfs("/dev/shm", &shm) != 0) return;
  facts.shm_bytes = shm.f_blocks * shm.f_frsize;
  facts.shm_free = shm.f_bavail * shm.f_frsize;
}

std::vector<RdmaPort> look_at_rdma() {
  const std::string devices = "/sys/class/infiniband/";
  std::vector<RdmaPort> ports;
  for (const std::string& device : names_in(devices)) {
    for (const std::string& port : names_in(devices + device + "/ports")) {
      const bool active = !value_in(devices + device + "/ports/" + port + "/state", "4:").empty();
      ports.push_back({.name = port == "1" ? device : device + ":" + port, .active = active});
    }
  }
  return ports;
}

// Returns the models of the GPUs that have a device file in /dev. NVIDIA's driver shows all devices
// in /proc, but a container may have only some of the device files.
std::vector<std::string> look_at_gpus() {
  const auto is_device = [](const std::string& name) {
    constexpr std::string_view prefix = "nvidia";
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           name.find_first_not_of("0123456789", prefix.size()) == name.npos;
  };
  const std::string driver = "/proc/driver/nvidia/gpus/";
  const std::vector<std::string> shown = names_in(driver);
  std::vector<std::string> gpus;
  for (const std::string& name : names_in("/dev")) {
    if (!is_device(name)) continue;
    const bool known = gpus.size() < shown.size();
    const std::string model = known ? value_in(driver + shown[gpus.size()] + "/information", "Model:") : "";
    gpus.push_back(model.empty() ? name : model);
  }
  return gpus;
}

}  // namespace

HostFacts look_at_host() {
  HostFacts facts;
  utsname system{};
  uname(&system);
  facts.version = version();
  facts.build = build();
  facts.kernel = system.release;
  facts.processor = value_in("/proc/cpuinfo", "model name");
  facts.cores = usable_processors();
  facts.memlock = soft_limit(RLIMIT_MEMLOCK);
  facts.open_files = soft_limit(RLIMIT_NOFILE);
  look_at_shm(facts);
  facts.interfaces = look_at_interfaces();
  facts.rdma = look_at_rdma();
  facts.gpus = look_at_gpus();
  return facts;
}

}  // namespace tutti::tools::doctor
