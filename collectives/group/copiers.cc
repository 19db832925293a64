#include "collectives/group/copiers.h"

#include <string>
#include <utility>

#include "collectives/arguments.h"

namespace tutti {

namespace {

// Returns the copier of the first library that copies for messages.
Result<std::unique_ptr<Copier>> make_copier(const std::vector<std::unique_ptr<Offload>>& offloads,
                                            Memory memory) {
  std::string reasons;
  for (const std::unique_ptr<Offload>& offload : offloads) {
    Result<std::unique_ptr<Copier>> made = offload->copier(memory);
    if (made.ok() || made.status().code() != Code::unsupported) return made;
    reasons += (reasons.empty() ? "" : "; ") + made.status().with_context(offload->name()).message();
  }
  return useless_memory(reasons.empty() ? "no library is loaded" : reasons);
}

}  // namespace

Copier* Copiers::find(int device) {
  const std::lock_guard lock(mutex_);
  const auto found = copiers_.find(device);
  return found == copiers_.end() ? nullptr : found->second.get();
}

Result<Copier*> Copiers::get(Memory memory) {
  if (Copier* const copier = find(memory.device())) return copier;
  if (driver_.driven_by_this_thread() && !offloads_.empty()) {
    return Status(Code::invalid_argument, "the first message in the " + to_string(memory) +
                                              " blocks, so it cannot be sent or received inside a `then` "
                                              "callback");
  }
  const std::lock_guard making(making_);
  if (Copier* const copier = find(memory.device())) return copier;
  Result<std::unique_ptr<Copier>> made = make_copier(offloads_, memory);
  if (!made.ok()) return made.status();
  Copier* const copier = made->get();
  {
    const DriverGuard guard(driver_);
    driver_.add(*copier);
  }
  const std::lock_guard lock(mutex_);
  copiers_.emplace(memory.device(), std::move(made).take());
  return copier;
}

// The destructor of a copier may block, so it runs after `guard` has given back the baton.
void Copiers::close() {
  std::map<int, std::unique_ptr<Copier>> copiers;
  const std::lock_guard lock(mutex_);
  if (copiers_.empty()) return;
  copiers.swap(copiers_);
  const DriverGuard guard(driver_);
  for (const auto& [device, copier] : copiers) driver_.remove(*copier);
}

}  // namespace tutti
