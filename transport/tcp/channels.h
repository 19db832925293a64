#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/channel_map.h"

namespace tutti::tcp {

class Channel;

// `Channels` lists the channels of one tcp transport, and those among them that the transport must serve when
// it is polled.
struct Channels {
  // Every poll reads the busy channels. With more busy channels than this, reading them would cost more than
  // it saves.
  static constexpr std::size_t max_busy = 4;
  struct Busy {
    Channel* channel;
    unsigned misses;  // polls in a row that found nothing
  };

  // Returns whether no more channels fit into `busy`. Other channels may then have data that a poll does not
  // read.
  bool is_full() const { return busy.size() >= max_busy; }
  void forget(int peer, Channel& channel) {
    by_peer.remove(peer, channel);
    std::erase(coalescing, &channel);
    std::erase_if(busy, [&channel](const Busy& each) { return each.channel == &channel; });
  }
  // Makes every poll read this channel's socket for a while. Bytes have just arrived there, so more are
  // likely to follow. Each read then takes one system call, not two: the transport does not ask first whether
  // there is anything to read.
  void expect_more(Channel& channel) {
    if (is_full()) return;
    const auto same = [&channel](const Busy& each) { return each.channel == &channel; };
    if (std::none_of(busy.begin(), busy.end(), same)) busy.push_back({&channel, 0});
  }

  ChannelMap<Channel> by_peer;
  std::vector<Busy> busy;
  // Frames of these channels may be waiting in the kernel. The next poll sends them (`send_at_once`).
  std::vector<Channel*> coalescing;
  // This counts the polls of the transport. It grows fast while a caller waits, and slowly otherwise.
  std::uint64_t polls = 0;
};

}  // namespace tutti::tcp
