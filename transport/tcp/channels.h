#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/channel_map.h"

namespace tutti::tcp {

class Channel;

// `Channels` lists the channels of one tcp transport, and those of them that the transport is to look at when
// it is polled.
struct Channels {
  // More of them would cost more than they save.
  static constexpr std::size_t max_busy = 4;
  struct Busy {
    Channel* channel;
    unsigned misses;  // polls in a row that found nothing
  };

  void forget(int peer, Channel& channel) {
    by_peer.remove(peer, channel);
    std::erase(coalescing, &channel);
    std::erase_if(busy, [&channel](const Busy& each) { return each.channel == &channel; });
  }
  // Data has arrived on this channel, so its socket is read at every poll for a while: that saves one of two
  // system calls, the one that asks whether there is anything to read.
  void expect_more(Channel& channel) {
    if (busy.size() >= max_busy) return;
    const auto same = [&channel](const Busy& each) { return each.channel == &channel; };
    if (std::none_of(busy.begin(), busy.end(), same)) busy.push_back({&channel, 0});
  }

  ChannelMap<Channel> by_peer;
  std::vector<Busy> busy;
  // Frames of these may wait in the kernel: the next poll sends them (`send_at_once`).
  std::vector<Channel*> coalescing;
  // How often the transport was polled: grows while a thread waits, and now and then otherwise.
  std::uint64_t polls = 0;
};

}  // namespace tutti::tcp
