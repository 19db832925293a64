#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// `Introduction` is what a rank says about itself when the ranks meet: facts that the others will use, and
// facts that only have to agree.
struct Introduction : PeerInfo {
  int world_size = 1;
  std::string wire_digest;                 // "NAME=value;" of each setting that must be equal everywhere
  std::string version;                     // of the library, and of its sources
  std::map<std::string, std::string> job;  // what launchers call it, by variable; TUTTI_JOB_ID among them
  std::string program;  // the name of what was started, "train.py"; empty if it is not known
  std::string nonce;    // random: tells this attempt to meet from any other by the same rank
};

// Describes this process; `job` comes from its environment. The caller adds the rank, the world size, the
// digest, the addresses and the version.
Introduction describe_this_process();
// The id of this boot of this host; empty if it cannot be read.
std::string boot_id();

std::string encode_introduction(const Introduction& rank);
// `protocol_error` if the text is not an introduction.
Result<Introduction> decode_introduction(std::string_view text);

// The `mismatch` says why these two ranks cannot be in one world, and names both.
Status check_compatible(const Introduction& a, const Introduction& b);

// `mismatch` if the two ranks are known to belong to two jobs, which must meet separately. A variable counts
// if both ranks have it; if both have TUTTI_JOB_ID, no other one counts.
Status check_same_job(const Introduction& a, const Introduction& b);

// Rank 0 finally publishes one of these: the table of all ranks, or the reason why there is none.
std::string encode_table(const std::vector<std::string>& encoded_introductions);
std::string encode_failure(const Status& failure);
// The failure that `text` publishes; none if it is a table, or damaged.
std::optional<Status> published_failure(std::string_view text);
// The status is the published failure, or `protocol_error`.
Result<std::vector<Introduction>> decode_table(std::string_view text);

}  // namespace tutti
