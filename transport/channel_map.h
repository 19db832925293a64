#pragma once

#include <map>

namespace tutti {

// A `ChannelMap` holds the channels of one transport, by peer. Only the driving thread may call it.
template <class Channel>
class ChannelMap {
 public:
  using Channels = std::map<int, Channel*>;

  // Adds a channel. It takes the place of an earlier channel with that peer, even if the earlier channel
  // still exists.
  void add(int peer, Channel& channel) { channels_[peer] = &channel; }
  // Removes a channel that is about to be destroyed. Does nothing if another channel has replaced it.
  void remove(int peer, const Channel& channel) {
    const auto found = channels_.find(peer);
    if (found != channels_.end() && found->second == &channel) channels_.erase(found);
  }
  // Returns the channel with that peer, or null if there is none.
  Channel* find(int peer) const {
    const auto found = channels_.find(peer);
    return found == channels_.end() ? nullptr : found->second;
  }
  const Channels& all() const { return channels_; }

 private:
  Channels channels_;
};

}  // namespace tutti
