#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/core/export.h>
#include <tutti/core/status.h>

namespace tutti {

// What a rank tells the others when they meet, before any connection between them exists.
struct PeerInfo {
  int rank = 0;
  int world_size = 1;
  std::string host;
  std::int64_t pid = 0;
  // Two ranks with the same of both may share memory, which is then proved by mapping it.
  std::string boot_id;
  std::uint64_t network_namespace = 0;
  std::string wire_digest;  // "NAME=value;" of each setting that must be equal everywhere
  std::map<std::string, std::string> addresses;  // opaque, by name of the transport
  std::string version;
  std::string nonce;  // random: tells this attempt to meet from any other by the same rank

  // "rank 3 (host b, pid 17)".
  std::string text() const;
};

// Filled in for this process; rank, world size, digest, addresses and version are left to the caller.
TUTTI_API PeerInfo describe_this_process();
// This boot of this host; empty if it cannot be read.
TUTTI_API std::string boot_id();

TUTTI_API std::string encode_peer(const PeerInfo& peer);
// `protocol_error` if it is none.
TUTTI_API Result<PeerInfo> decode_peer(std::string_view text);

// Why these two cannot be in one world, naming both; or `ok`.
TUTTI_API Status check_compatible(const PeerInfo& a, const PeerInfo& b);

// What rank 0 publishes in the end: everybody, or why not.
TUTTI_API std::string encode_table(const std::vector<std::string>& encoded_peers);
TUTTI_API std::string encode_failure(const Status& failure);
// The published failure, or `protocol_error`, as status.
TUTTI_API Result<std::vector<PeerInfo>> decode_table(std::string_view text);

}  // namespace tutti
