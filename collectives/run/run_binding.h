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
// its messages, and the function to call at the end.
struct RunBinding {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Reducer reducer;
  double factor = 1.0;      // of a premultiplied sum
  std::size_t divisor = 1;  // of an average
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;
  Fingerprint call;
  Mesh* mesh = nullptr;
  std::span<const int> ranks;  // communicator rank -> world rank
  // Called once, as the last act of a run; it may reuse or destroy the run. A failure is reported at once,
  // while messages are still posted. After a failure, `cancel` must be called before anything else.
  void (*finished)(void* owner, const Status& status) = nullptr;
  void* owner = nullptr;
};

}  // namespace tutti
