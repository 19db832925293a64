#pragma once

#include <memory>

#include "transport/inproc/options.h"
#include "transport/transport.h"

// The inproc transport connects ranks that are threads of one process: frames are copied into the peer's
// queue, and the peer's driver is woken. It is the reference for the other transports, and lets all layers
// above it be tested without a network. `create` makes it.
namespace tutti::inproc {

// Makes the hub where ranks meet. The hub lives as long as a transport or the caller refers to it.
std::shared_ptr<Hub> make_hub();

std::unique_ptr<tutti::Transport> create(Options options);

}  // namespace tutti::inproc
