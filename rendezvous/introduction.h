#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tutti/core/export.h>
#include <tutti/core/status.h>
#include <tutti/transport/peer.h>

namespace tutti {

// What a rank says about itself when the ranks meet: what the others will know of it, and what only has to
// agree.
struct Introduction : PeerInfo {
  int world_size = 1;
  std::string wire_digest;  // "NAME=value;" of each setting that must be equal everywhere
  std::string version;      // of the library, and of its sources
  std::string nonce;        // random: tells this attempt to meet from any other by the same rank
};

// Filled in for this process; rank, world size, digest, addresses and version are left to the caller.
TUTTI_API Introduction describe_this_process();
// This boot of this host; empty if it cannot be read.
TUTTI_API std::string boot_id();

TUTTI_API std::string encode_introduction(const Introduction& rank);
// `protocol_error` if it is none.
TUTTI_API Result<Introduction> decode_introduction(std::string_view text);

// Why these two cannot be in one world, naming both; or `ok`.
TUTTI_API Status check_compatible(const Introduction& a, const Introduction& b);

// What rank 0 publishes in the end: everybody, or why not.
TUTTI_API std::string encode_table(const std::vector<std::string>& encoded_introductions);
TUTTI_API std::string encode_failure(const Status& failure);
// The published failure, or `protocol_error`, as status.
TUTTI_API Result<std::vector<Introduction>> decode_table(std::string_view text);

}  // namespace tutti
