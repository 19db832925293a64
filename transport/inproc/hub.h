#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/inproc/commons.h"
#include "transport/inproc/mailbox.h"
#include "transport/inproc/pipe.h"
#include "transport/shared_segment.h"

namespace tutti::inproc {

// A `Hub` is where the ranks of one process meet: it knows the mailboxes of all of them, their pipes and the
// memory that they share. Any thread may call it.
class Hub {
 public:
  Hub();

  // Equal for two transports exactly if they share a hub.
  const std::string& id() const { return id_; }
  std::shared_ptr<Mailbox> mailbox(int rank);
  // The pipe between two ranks, made on first use and announced to the other one; null if that has stopped.
  std::shared_ptr<Pipe> connect(int from, int to);
  // The memory that the members of a request share. The first member to ask makes it.
  std::shared_ptr<Commons> commons(const ShareRequest& request);

 private:
  std::shared_ptr<Mailbox> find_mailbox(int rank);

  std::string id_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Mailbox>> mailboxes_;
  std::map<std::pair<int, int>, std::shared_ptr<Pipe>> pipes_;
  std::map<std::pair<std::uint64_t, std::vector<int>>, std::weak_ptr<Commons>> commons_;
};

}  // namespace tutti::inproc
