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

// A `Hub` is where the ranks of one process meet: it holds their mailboxes, their pipes and the memory that
// they share. Any thread may call it.
class Hub {
 public:
  Hub();

  // Returns a text that identifies this hub. Two transports have equal texts if and only if they share a hub.
  const std::string& id() const { return id_; }
  std::shared_ptr<Mailbox> mailbox(int rank);
  // Returns the pipe between two ranks. The first call makes the pipe and announces it to the other rank. If
  // the other rank has stopped before that, returns null.
  std::shared_ptr<Pipe> connect(int from, int to);
  // Returns the memory that the members of a request share. The first member to ask makes it.
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
