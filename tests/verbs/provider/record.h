#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti::provider {

// `Counts` says how many objects exist.
struct Counts {
  int contexts = 0;
  int domains = 0;
  int regions = 0;
  int channels = 0;
  int queues = 0;  // completion queues
  int pairs = 0;
  int windows = 0;
  bool operator==(const Counts&) const = default;
};

// `Traffic` says what has been asked of the provider since it was made.
struct Traffic {
  std::uint64_t sends = 0;     // work requests of any kind that were posted to send queues
  std::uint64_t inlined = 0;   // work requests that were sent inline
  std::uint64_t writes = 0;    // work requests that write into the peer's memory
  std::uint64_t receives = 0;  // work requests that were posted to receive queues
  std::uint64_t registrations = 0;
  std::uint64_t binds = 0;          // requests that bind a memory window
  std::uint64_t invalidations = 0;  // requests that invalidate a memory window
  std::uint64_t unprepared = 0;     // registrations before `fork_init` was called
  std::uint64_t vain_reads = 0;     // reads of an event when there was none
  std::uint64_t not_ready = 0;      // how often a message has met an empty receive queue
};

// `Write` is a request that writes into the peer's memory.
struct Write {
  std::uint32_t pair = 0;  // the number of the queue pair to which the request was posted
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

// `Record` is what a test can ask about the use of the provider. `mistakes` are wrong uses of libibverbs.
// With a real device, they can cause undefined behaviour or endless waiting.
struct Record {
  Counts counts;
  Traffic traffic;
  std::map<std::string, std::uint64_t> written;  // bytes that each device has written into its peers' memory
  Write last_write;
  std::vector<std::string> mistakes;
};

}  // namespace tutti::provider
