#pragma once

#include <cstdint>

#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/shared_collectives.h"
#include "core/fingerprint.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Parts` refers to the parts of a communicator that every kind of operation needs, from its call to its end.
struct Parts {
  const std::uint32_t context;
  const Composite part_of;  // the composite call that all calls of this communicator belong to, if any
  const Members& members;
  Mesh& mesh;
  Failure& failure;
  Journal& journal;
  LiveOperations& live;
  SharedCollectives& shared;
  Gate& gate;
};

}  // namespace tutti
