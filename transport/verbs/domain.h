#pragma once

#include <memory>

#include "transport/verbs/devices.h"

namespace tutti::verbs {

// A `Domain` is a protection domain of a device: the memory and the queue pairs in it may be used together.
// Registered memory keeps its domain alive, and so may outlive the transport.
class Domain {
 public:
  static Result<std::shared_ptr<Domain>> create(const Functions& functions, std::shared_ptr<Device> device);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  const Functions& functions() const { return functions_; }
  ibv_pd* raw() const { return domain_; }
  // Returns whether the device has memory windows of type 2. A window lets one peer write into a part of
  // registered memory, until the window is invalidated.
  bool has_windows() const { return has_windows_; }

 private:
  Domain(const Functions& functions, std::shared_ptr<Device> device, ibv_pd* domain);

  const Functions& functions_;
  const std::shared_ptr<Device> device_;
  ibv_pd* const domain_;
  const bool has_windows_;
};

using SharedDomain = std::shared_ptr<Domain>;

}  // namespace tutti::verbs
