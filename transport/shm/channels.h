#pragma once

#include <algorithm>
#include <vector>

#include "transport/channel_map.h"

namespace tutti::shm {

class Channel;

// `Channels` lists the channels of one shm transport, and those of them that the transport is to poll.
struct Channels {
  // Channels close from within `poll`, which walks this list; so a closed one leaves a null.
  void closed(Channel& channel) {
    Channel* const none = nullptr;
    std::replace(open.begin(), open.end(), &channel, none);
  }

  ChannelMap<Channel> by_peer;
  std::vector<Channel*> open;  // their pipes are; null: closed since the last poll
};

}  // namespace tutti::shm
