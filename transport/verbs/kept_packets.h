#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace tutti::verbs {

using Packet = std::vector<std::byte>;

// `KeptPackets` are copies of the last packets that a pipe has sent. If the pipe breaks, the packets that the
// peer has not dealt with are sent again over another pipe. The numbers of packets wrap around, so the ring's
// size is a power of two.
class KeptPackets {
 public:
  // Makes room for `most` packets. The peer never has more packets left to deal with.
  void resize(std::size_t most) { ring_.resize(std::bit_ceil(most)); }
  // Keeps a packet that consists of these parts. The packet takes the place of one that was sent at least
  // `most` packets earlier. Does nothing if `resize` was not called.
  template <class Parts>
  void keep(std::uint32_t number, const Parts& parts) {
    if (ring_.empty()) return;
    Packet& packet = at(number);
    packet.clear();
    for (const std::span<const std::byte> part : parts) packet.insert(packet.end(), part.begin(), part.end());
  }
  // Returns the packets from `first` to the one before `end`, except those that are empty.
  std::deque<Packet> take(std::uint32_t first, std::uint32_t end) {
    std::deque<Packet> packets;
    for (; first != end; ++first) {
      if (!at(first).empty()) packets.push_back(at(first));
    }
    return packets;
  }

 private:
  Packet& at(std::uint32_t number) { return ring_[number % ring_.size()]; }

  std::vector<Packet> ring_;
};

}  // namespace tutti::verbs
