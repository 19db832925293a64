#pragma once

#include <algorithm>
#include <vector>

#include "transport/channel_map.h"

namespace tutti::shm {

class Channel;

// `Channels` lists the channels of one shm transport, and those among them that the transport must poll.
struct Channels {
  // Removes a closed channel from `open`. Channels may close while `poll` walks that list, so their places
  // become null.
  void closed(Channel& channel) {
    Channel* const none = nullptr;
    std::replace(open.begin(), open.end(), &channel, none);
  }

  ChannelMap<Channel> by_peer;
  std::vector<Channel*> open;  // channels whose pipe is open; null if closed since the last poll
};

}  // namespace tutti::shm
