#pragma once

#include <memory>
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

  const Options options;
  const std::shared_ptr<Mailbox> mailbox;  // ours
  ChannelMap<Channel> channels;
};

}  // namespace tutti::inproc
