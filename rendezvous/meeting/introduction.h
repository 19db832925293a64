#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// `Introduction` is what a rank says about itself when the ranks meet. It has facts that the other ranks will
// use, and facts that they only compare with their own facts.
struct Introduction : PeerInfo {
  int world_size = 1;
  std::string wire_digest;                 // "NAME=value;" of each setting that must be equal everywhere
  std::string version;                     // the library's version, with a digest of its sources
  std::map<std::string, std::string> job;  // the variables that identify the job, such as TUTTI_JOB_ID
  std::string program;                     // such as "train.py"; empty if unknown
  std::string nonce;                       // random text; a rank recognises its own keys in the store by it
};

// Describes this process, and reads `job` from the environment. The caller adds the rank, the world size, the
// digest, the addresses and the version.
Introduction describe_this_process();
// Returns the id of the current boot of this host, or an empty text if it cannot be read.
std::string boot_id();

std::string encode_introduction(const Introduction& rank);
// Fails with `protocol_error` if the text is not an Introduction.
Result<Introduction> decode_introduction(std::string_view text);

// Fails with `mismatch` if the two ranks cannot be in one world. The error says why, and names both.
Status check_compatible(const Introduction& a, const Introduction& b);

// Fails with `mismatch` if the two ranks belong to different jobs, since jobs must meet separately. Compares
// the variables in `job` that both ranks have; if both have TUTTI_JOB_ID, compares only TUTTI_JOB_ID.
Status check_same_job(const Introduction& a, const Introduction& b);

// These two functions encode the table of all ranks, and a failure that is published in its place.
std::string encode_table(const std::vector<std::string>& encoded_introductions);
std::string encode_failure(const Status& failure);
// Returns the failure in `text`, or nothing if the text is a table or is damaged.
std::optional<Status> published_failure(std::string_view text);
// Returns the table. Fails with the failure that was published in its place, or with `protocol_error`.
Result<std::vector<Introduction>> decode_table(std::string_view text);

}  // namespace tutti
