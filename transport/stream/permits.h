#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/registered_memory.h"
#include "transport/stream/frame.h"

namespace tutti {

// `Permits` lets the peer of one channel write into registered memory, for one operation at a time. A pipe
// whose device can revoke a key implements it (docs/seams/grants.md). Each permit has a number, which its
// user chooses. The user may choose the number again once the permit is over. Only the driving thread calls
// these functions.
class Permits {
 public:
  enum class Answer { given, later, never };

  virtual ~Permits() = default;
  // Permits the peer to write into `memory`, and into no other memory by the same key. If the answer is
  // `given`, `place` is where the peer finds the memory. If the answer is `later`, `StreamChannel::permitted`
  // is called once the permit is given, unless the permit is revoked or the pipe is closed first. If the
  // answer is `never`, there is no permit. `own` is the registration of `memory` for this operation
  // (`RemoteMemory::add_briefly`). It is null if a region that is registered for longer contains the memory.
  virtual Answer permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                        RemotePlace& place) = 0;
  // Ends a permit, even one that was not given yet. Returns true if the peer can no longer write into the
  // memory. If the function returns false, the peer may still write until `StreamChannel::revoked` is called
  // or the pipe is closed.
  virtual bool revoke(std::uint32_t number) = 0;
};

// This is the number of the permit for the staging chunks of a channel (staging.h). The permit is over when
// the pipe is closed.
inline constexpr std::uint32_t staging_permit = 0xffffffff;

}  // namespace tutti
