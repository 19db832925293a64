#pragma once

#include <map>

namespace tutti {

// A `ChannelMap` knows the channels of one transport by their peers. The driving thread calls all of it.
template <class Channel>
class ChannelMap {
 public:
  using Channels = std::map<int, Channel*>;

  // Replaces an earlier channel with that peer, which may still exist.
  void add(int peer, Channel& channel) { channels_[peer] = &channel; }
  // The channel is about to be destroyed. Has no effect if another one has replaced it.
  void remove(int peer, const Channel& channel) {
    const auto found = channels_.find(peer);
    if (found != channels_.end() && found->second == &channel) channels_.erase(found);
  }
  // Null if there is none.
  Channel* find(int peer) const {
    const auto found = channels_.find(peer);
    return found == channels_.end() ? nullptr : found->second;
  }
  const Channels& all() const { return channels_; }

 private:
  Channels channels_;
};

}  // namespace tutti
