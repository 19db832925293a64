#include "transport/inproc/hub.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>

#include <unistd.h>

namespace tutti::inproc {

void Mailbox::start(Driver& driver) {
  const std::lock_guard lock(mutex_);
  driver_ = &driver;
}

void Mailbox::stop() {
  const std::lock_guard lock(mutex_);
  driver_ = nullptr;
  stopped_ = true;
  announced_.clear();
}

bool Mailbox::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void Mailbox::notify() {
  if (pending_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  if (driver_ != nullptr) driver_->wake();
}

void Mailbox::announce(std::shared_ptr<Wire> wire) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    announced_.push_back(std::move(wire));
  }
  notify();
}

std::vector<std::shared_ptr<Wire>> Mailbox::take_announced() {
  const std::lock_guard lock(mutex_);
  return std::exchange(announced_, {});
}

Wire::Outcome Wire::push(int side, const EncodedFrameHeader& header, std::span<const std::byte> payload,
                         std::size_t limit) {
  const std::size_t bytes = frame_header_bytes + payload.size();
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(1 - side)];
    if (direction.receiver_closed || direction.sender_closed) return Outcome::closed;
    if (!direction.queue.empty() && direction.bytes + bytes > limit) {
      direction.sender_waits = true;
      return Outcome::wait;
    }
    if (direction.spare.empty()) direction.spare.emplace_back();
    Packet& packet = direction.spare.back();
    packet.header = header;
    packet.payload.assign(payload.begin(), payload.end());
    direction.queue.splice(direction.queue.end(), direction.spare, std::prev(direction.spare.end()));
    direction.bytes += bytes;
  }
  box(1 - side).notify();
  return Outcome::done;
}

Wire::Outcome Wire::pop(int side, Packet& packet) {
  bool wake_sender = false;
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(side)];
    if (direction.queue.empty()) return direction.sender_closed ? Outcome::closed : Outcome::wait;
    std::swap(packet, direction.queue.front());
    direction.spare.splice(direction.spare.end(), direction.queue, direction.queue.begin());
    direction.bytes -= frame_header_bytes + packet.payload.size();
    wake_sender = std::exchange(direction.sender_waits, false);
  }
  if (wake_sender) box(1 - side).notify();
  return Outcome::done;
}

void Wire::close(int side) {
  {
    const std::lock_guard lock(mutex_);
    Direction& in = towards_[static_cast<std::size_t>(side)];
    in.receiver_closed = true;
    in.queue.clear();
    in.bytes = 0;
    towards_[static_cast<std::size_t>(1 - side)].sender_closed = true;
  }
  box(1 - side).notify();
}

Commons::Commons(std::uint64_t bytes, std::vector<std::shared_ptr<Mailbox>> boxes)
    : boxes_(std::move(boxes)) {
  constexpr std::size_t page = 4096;
  owned_ = aligned_bytes(page, bytes);
  if (owned_ == nullptr) throw std::bad_alloc();
  memory_ = {owned_.get(), bytes};
  std::fill_n(owned_.get(), bytes, std::byte{0});
}

void Commons::join() {
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    all = ++joined_ == boxes_.size();
  }
  if (all) notify_all();
}

void Commons::refuse() {
  {
    const std::lock_guard lock(mutex_);
    if (refused_ || joined_ == boxes_.size()) return;
    refused_ = true;
  }
  notify_all();
}

Commons::Outcome Commons::outcome() const {
  const std::lock_guard lock(mutex_);
  if (refused_) return Outcome::refused;
  return joined_ == boxes_.size() ? Outcome::granted : Outcome::wait;
}

void Commons::notify_all() {
  for (const auto& box : boxes_) box->notify();
}

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
  commons = std::make_shared<Commons>(request.bytes, std::move(boxes));
  entry = commons;
  return commons;
}

std::shared_ptr<Wire> Hub::connect(int from, int to) {
  const std::lock_guard lock(mutex_);
  const auto [low, high] = std::minmax(from, to);
  std::shared_ptr<Wire>& wire = wires_[{low, high}];
  if (wire != nullptr) return wire;
  const std::shared_ptr<Mailbox> box = find_mailbox(to);
  if (box->stopped()) return nullptr;
  wire = std::make_shared<Wire>(low, high, find_mailbox(low), find_mailbox(high));
  box->announce(wire);
  return wire;
}

}  // namespace tutti::inproc
