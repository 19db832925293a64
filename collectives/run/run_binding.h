#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/status.h>

#include "core/fingerprint.h"
#include "core/reduce.h"

namespace tutti {

class Mesh;

// A `RunBinding` is everything that one execution adds to a schedule: the buffers, the values that identify
// its messages, and the functions to call (see `Execution`).
struct RunBinding {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Reducer reducer;
  double factor = 1.0;      // for a premultiplied sum
  std::size_t divisor = 1;  // for an average
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;
  Fingerprint call;
  Mesh* mesh = nullptr;
  std::span<const int> ranks;  // communicator rank -> world rank
  // Called once, as the last act of an execution: nothing touches the buffers any more. This function may
  // start the execution again or destroy it.
  void (*finished)(void* owner, const Status& status) = nullptr;
  // Called at most once, before `finished`, when the execution cannot continue. Messages may still be posted.
  // The owner must then call `Execution::cancel`, and may do so within this function.
  void (*failed)(void* owner, const Status& why) = nullptr;
  void* owner = nullptr;
};

}  // namespace tutti
