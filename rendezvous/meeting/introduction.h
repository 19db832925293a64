#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// What a rank says about itself when the ranks meet: what the others will know of it, and what only has to
// agree.
struct Introduction : PeerInfo {
  int world_size = 1;
  std::string wire_digest;                 // "NAME=value;" of each setting that must be equal everywhere
  std::string version;                     // of the library, and of its sources
  std::map<std::string, std::string> job;  // what launchers call it, by variable; TUTTI_JOB_ID among them
  std::string nonce;  // random: tells this attempt to meet from any other by the same rank
};

// Filled in for this process, `job` from its environment; rank, world size, digest, addresses and version are
// left to the caller.
Introduction describe_this_process();
// This boot of this host; empty if it cannot be read.
std::string boot_id();

std::string encode_introduction(const Introduction& rank);
// `protocol_error` if it is none.
Result<Introduction> decode_introduction(std::string_view text);

// Why these two cannot be in one world, naming both; or `ok`.
Status check_compatible(const Introduction& a, const Introduction& b);

// Whether two ranks are known to be of two jobs, of which each is to meet by itself; or `ok`. Variables that
// only one of them has say nothing, and where both have TUTTI_JOB_ID, no other one does.
Status check_same_job(const Introduction& a, const Introduction& b);

// What rank 0 publishes in the end: everybody, or why not.
std::string encode_table(const std::vector<std::string>& encoded_introductions);
std::string encode_failure(const Status& failure);
// The failure that `text` publishes; none if it is a table, or damaged.
std::optional<Status> published_failure(std::string_view text);
// The published failure, or `protocol_error`, as status.
Result<std::vector<Introduction>> decode_table(std::string_view text);

}  // namespace tutti
