#include "transport/inproc/hub.h"

#include <algorithm>
#include <atomic>

#include <unistd.h>

namespace tutti::inproc {

Hub::Hub() {
  static std::atomic<std::uint64_t> hubs{0};
  id_ = std::to_string(::getpid()) + "." + std::to_string(hubs.fetch_add(1));
}

std::shared_ptr<Mailbox> Hub::find_mailbox(int rank) {
  std::shared_ptr<Mailbox>& box = mailboxes_[rank];
  if (box == nullptr) box = std::make_shared<Mailbox>();
  return box;
}

std::shared_ptr<Mailbox> Hub::mailbox(int rank) {
  const std::lock_guard lock(mutex_);
  return find_mailbox(rank);
}

std::shared_ptr<Commons> Hub::commons(const ShareRequest& request) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Commons>& entry = commons_[{request.key, request.members}];
  std::shared_ptr<Commons> commons = entry.lock();
  if (commons != nullptr) return commons;
  std::vector<std::shared_ptr<Mailbox>> boxes;
  for (const int member : request.members) boxes.push_back(find_mailbox(member));
  commons = std::make_shared<Commons>(request.bytes, boxes);
  entry = commons;
  return commons;
}

std::shared_ptr<Pipe> Hub::connect(int from, int to) {
  const std::lock_guard lock(mutex_);
  const auto [low, high] = std::minmax(from, to);
  std::shared_ptr<Pipe>& pipe = pipes_[{low, high}];
  if (pipe != nullptr) return pipe;
  const std::shared_ptr<Mailbox> box = find_mailbox(to);
  if (box->stopped()) return nullptr;
  pipe = std::make_shared<Pipe>(low, high, find_mailbox(low), find_mailbox(high));
  box->announce(pipe);
  return pipe;
}

}  // namespace tutti::inproc
