#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <tutti/memory.h>
#include <tutti/status.h>

#include "transport/driver/driver.h"
#include "transport/offload/copier.h"
#include "transport/offload/offload.h"

namespace tutti {

// `Copiers` are the copiers of one world, one for each device whose memory has been used by messages.
class Copiers {
 public:
  // `offloads` make the copiers. Both arguments must outlive this object.
  Copiers(Driver& driver, const std::vector<std::unique_ptr<Offload>>& offloads)
      : driver_(driver), offloads_(offloads) {}

  // Returns the copier of a device. The first call for a device blocks, so it fails with `invalid_argument`
  // on the driving thread. Errors: also those of `Offload::copier`. Any thread may call.
  Result<Copier*> get(Memory memory);
  // Destroys all copiers. No copy may be under way. The calling thread must not drive.
  void close();

 private:
  Copier* find(int device);

  Driver& driver_;
  const std::vector<std::unique_ptr<Offload>>& offloads_;
  std::mutex making_;  // held while a copier is made; the driving thread never waits for it
  std::mutex mutex_;   // guards the next member
  std::map<int, std::unique_ptr<Copier>> copiers_;  // by the number of the device
};

}  // namespace tutti
