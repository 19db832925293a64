#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace tutti {

// A rank has at most `max_offloads` offloads, and the facts of each have at most `max_offload_facts` bytes.
inline constexpr std::size_t max_offloads = 8;
inline constexpr std::size_t max_offload_facts = 512;

// `PeerInfo` is what every rank knows about every other rank after `init`.
struct PeerInfo {
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string boot_id;                  // equal for all ranks on one machine, even in different containers
  std::uint64_t network_namespace = 0;  // inode number; only ranks of one namespace can share memory
  std::map<std::string, std::string> addresses;      // transport name -> its opaque address
  std::map<std::string, std::string> offloads = {};  // name -> facts (transport/offload/offload.h)

  // Returns whether a loopback address means the same network to both ranks.
  bool shares_network_with(const PeerInfo& other) const {
    return boot_id == other.boot_id && network_namespace == other.network_namespace;
  }
  // Returns a text such as "rank 3 (host b, pid 4711)".
  std::string describe() const {
    return "rank " + std::to_string(rank) + " (host " + host + ", pid " + std::to_string(pid) + ")";
  }
};

}  // namespace tutti
