#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/channel_map.h"
#include "transport/inproc/hub.h"
#include "transport/inproc/options.h"
#include "transport/transport_context.h"

namespace tutti::inproc {

class Channel;

// A `Context` is what the parts of one inproc transport share.
struct Context : TransportContext {
  explicit Context(Options from) : options(std::move(from)), mailbox(options.hub->mailbox(options.rank)) {}

  // Returns the limits that a peer has published, or nothing if it does not share our hub.
  std::optional<MessageLimits> limits_of(const PeerInfo& peer) const {
    const auto found = peer.addresses.find("inproc");
    if (found == peer.addresses.end()) return std::nullopt;
    const std::string_view text = found->second;
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (text.substr(0, slash) != options.hub->id() || slash == text.size()) return std::nullopt;
    return parse_limits(text.substr(slash + 1));
  }
  // Returns the limits of messages between this rank and a peer.
  MessageLimits limits_with(int rank) const {
    return minimum(options.limits, limits_of(peer(rank)).value_or(options.limits));
  }

  const Options options;
  const std::shared_ptr<Mailbox> mailbox;  // this rank's mailbox
  ChannelMap<Channel> channels;
};

}  // namespace tutti::inproc
