#include "collectives/group/offloading.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace tutti {

Offloading::Offloading(const Members& members, const World& world, FoundHostCalls found)
    : members_(members), mesh_(*world.mesh), driver_(world.engine->driver), found_(std::move(found)) {
  for (const std::unique_ptr<Offload>& offload : world.offloads) {
    host_libraries_ += offload->takes_host_memory() ? 1 : 0;
    Slot& slot = *slots_.emplace_back(std::make_unique<Slot>());
    slot.library.offload = offload.get();
    slot.library.name = offload->name();
    slot.library.here = members.describe_this_rank() + ": " + slot.library.name;
    slot.library.world_rank = members.own_world_rank();
  }
}

Library* Offloading::choose(const Fingerprint& call) {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (judge(*slot, call).ok()) return &slot->library;
  }
  return nullptr;
}

std::string Offloading::why_none(const Fingerprint& call) {
  const std::lock_guard lock(mutex_);
  std::string reasons;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    reasons += (reasons.empty() ? "" : "; ") + slot->library.name + ": ";
    reasons += judge(*slot, call).message();
  }
  return reasons.empty() ? "no library is loaded" : reasons;
}

Status Offloading::judge(Slot& slot, const Fingerprint& call) {
  const Offload& offload = *slot.library.offload;
  if (!call.on_device && !offload.takes_host_memory())
    return Status(Code::unsupported, "it takes device memory only");
  if (!slot.fits) slot.fits = fit(offload);
  if (!slot.fits->ok()) return *slot.fits;
  return offload.takes(call, peers_locked());
}

std::span<const PeerInfo* const> Offloading::peers() {
  const std::lock_guard lock(mutex_);
  return peers_locked();
}

std::span<const PeerInfo* const> Offloading::peers_locked() {
  if (peers_.empty()) {
    for (const int rank : members_.world_ranks()) peers_.push_back(&mesh_.peer(rank));
  }
  return peers_;
}

Status Offloading::fit(const Offload& offload) {
  const std::span<const PeerInfo* const> all = peers_locked();
  const std::string name(offload.name());
  const auto has_it = [&](const PeerInfo* peer) { return peer->offloads.contains(name); };
  const auto one = std::ranges::find_if(all, has_it);
  const auto other = std::ranges::find_if_not(all, has_it);
  if (other == all.end()) return offload.fits(all);
  if (one == all.end()) return Status(Code::unsupported, "no rank has published it");
  return Status(Code::unsupported, (*one)->describe() + " has it, " + (*other)->describe() + " has not");
}

Status Offloading::open(Library& library, OffloadPeers& peers) try {
  Result<std::unique_ptr<OffloadSession>> opened = library.offload->open(peers);
  if (!opened.ok()) return opened.status();
  const DriverGuard guard(driver_);
  library.session = std::move(opened).take();
  driver_.add(*library.session);
  if (aborted_) library.session->abort(why_);
  library.is_open.store(true, std::memory_order_release);
  return Status();
} catch (const std::exception& error) {
  return Status(Code::internal, error.what());
}

void Offloading::abort(const Status& why) {
  aborted_ = true;
  why_ = why;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->library.session != nullptr) slot->library.session->abort(why);
  }
}

// A session's destructor may block. So the sessions are destroyed at the end of this function, when `abort`
// no longer finds them and `guard` has given back the baton (see Driver).
void Offloading::close() {
  if (slots_.empty()) return;
  std::vector<std::unique_ptr<OffloadSession>> sessions;
  const DriverGuard guard(driver_);
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->library.session == nullptr) continue;
    driver_.remove(*slot->library.session);
    sessions.push_back(std::move(slot->library.session));
  }
}

}  // namespace tutti
