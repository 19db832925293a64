#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/free_delete.h"
#include "transport/driver/driver.h"
#include "transport/shared_segment.h"
#include "transport/stream/frame.h"

namespace tutti::inproc {

class Commons;
class Mailbox;
class Wire;

// A `Hub` knows the mailboxes of all ranks of one process, and what they share.
class Hub {
 public:
  Hub();

  // Equal for two transports exactly if they share a hub.
  const std::string& id() const { return id_; }
  std::shared_ptr<Mailbox> mailbox(int rank);
  // The wire between two ranks, made on first use and announced to the other one; null if that has stopped.
  std::shared_ptr<Wire> connect(int from, int to);
  // What the members of a request share; the first to ask makes it.
  std::shared_ptr<Commons> commons(const ShareRequest& request);

 private:
  std::shared_ptr<Mailbox> find_mailbox(int rank);

  std::string id_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Mailbox>> mailboxes_;
  std::map<std::pair<int, int>, std::shared_ptr<Wire>> wires_;
  std::map<std::pair<std::uint64_t, std::vector<int>>, std::weak_ptr<Commons>> commons_;
};

// A `Mailbox` is how others get a rank's attention.
class Mailbox {
 public:
  void start(Driver& driver);
  // Nobody is woken after this.
  void stop();
  bool stopped() const;
  void notify();
  // A peer has made a wire to this rank.
  void announce(std::shared_ptr<Wire> wire);
  std::vector<std::shared_ptr<Wire>> take_announced();
  bool pending() const { return pending_.load(); }
  bool take_pending() { return pending_.load() && pending_.exchange(false); }

 private:
  mutable std::mutex mutex_;
  Driver* driver_ = nullptr;
  bool stopped_ = false;
  std::atomic<bool> pending_{false};
  std::vector<std::shared_ptr<Wire>> announced_;
};

struct Packet {
  EncodedFrameHeader header;
  std::vector<std::byte> payload;
};

// A `Wire` is the connection of two ranks: a bounded queue of frames in each direction. Sides are 0 (the
// lower rank) and 1.
class Wire {
 public:
  enum class Outcome { done, wait, closed };

  Wire(int low, int high, std::shared_ptr<Mailbox> low_box, std::shared_ptr<Mailbox> high_box)
      : ranks_{low, high}, boxes_{std::move(low_box), std::move(high_box)} {}

  int rank(int side) const { return ranks_[static_cast<std::size_t>(side)]; }
  Mailbox& box(int side) { return *boxes_[static_cast<std::size_t>(side)]; }

  // Copies a frame into the queue of the other side. `wait`: it is full, this side is notified when it is
  // not.
  Outcome push(int side, const EncodedFrameHeader& header, std::span<const std::byte> payload,
               std::size_t limit);
  // Swaps the next frame for this side into `packet` (whose memory is reused). `closed`: nothing will come.
  Outcome pop(int side, Packet& packet);
  // This side neither sends nor receives any more; what it has sent can still be received.
  void close(int side);
  void accept() { accepted_.store(true); }
  bool accepted() const { return accepted_.load(); }

 private:
  struct Direction {  // towards a side
    std::list<Packet> queue;
    std::list<Packet> spare;  // with memory to be used again
    std::size_t bytes = 0;
    bool sender_closed = false;
    bool receiver_closed = false;
    bool sender_waits = false;
  };

  const std::array<int, 2> ranks_;
  const std::array<std::shared_ptr<Mailbox>, 2> boxes_;
  std::atomic<bool> accepted_{false};  // both sides have it
  std::mutex mutex_;
  std::array<Direction, 2> towards_;
};

// `Commons` is memory that a group of ranks asks for: it is theirs once all of them have.
class Commons {
 public:
  Commons(std::uint64_t bytes, std::vector<std::shared_ptr<Mailbox>> boxes);
  std::span<std::byte> memory() const { return memory_; }
  Mailbox& box(int member) { return *boxes_[static_cast<std::size_t>(member)]; }

  // A member asks; all of them are notified when the last one has.
  void join();
  // Nobody gets it: a member wants another size, or has waited too long.
  void refuse();
  enum class Outcome { wait, granted, refused };
  Outcome outcome() const;

 private:
  void notify_all();

  const std::vector<std::shared_ptr<Mailbox>> boxes_;
  AlignedBytes owned_;
  std::span<std::byte> memory_;
  mutable std::mutex mutex_;
  std::size_t joined_ = 0;
  bool refused_ = false;
};

}  // namespace tutti::inproc
