#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/transport.h"
#include "transport/verbs/options.h"

// The verbs transport connects ranks by InfiniBand or RoCE; `create` makes it.
namespace tutti::verbs {

// Makes the transport. Fails with `unsupported`, and says why, if there is no libibverbs or no usable port,
// if payloads must be encrypted, or if tutti was built without rdma-core's headers. The transport listens at
// once, so that its address can be published, but answers no peer before `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::verbs
