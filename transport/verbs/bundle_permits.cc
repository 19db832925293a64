#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transport/verbs/bundle.h"

// This file lets the peer of a bundle write into memory, over each of the pipes.
namespace tutti::verbs {

Permits::Answer Bundle::permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                               RemotePlace& place) {
  RailMemory& all = *context_.memory;
  if (number == staging_permit) {
    const std::optional<RemotePlace> found = all.find(memory);
    if (!found) return Permits::Answer::never;
    place = *found;
    return Permits::Answer::given;
  }
  std::unique_ptr<RegisteredMemory> registration;
  if (own == nullptr && all.is_registered(memory)) {
    if (windows_are_ready()) return bind(number, memory);
    own = (registration = all.add_permit(memory)).get();
  }
  if (own == nullptr) return Permits::Answer::never;
  place = all.place_of(memory, *own);
  if (registration != nullptr) permits_[number] = {.registration = std::move(registration), .place = place};
  return Permits::Answer::given;
}

// Returns whether each pipe that is or may become part of the bundle has windows. Otherwise, the peer might
// be left with pipes for which it has no key.
bool Bundle::windows_are_ready() const {
  return main() != nullptr && std::ranges::all_of(lanes_, [](const auto& lane) {
           return lane->state == Lane::State::gone ||
                  (lane->state == Lane::State::open && lane->pipe->has_windows());
         });
}

// Binds a window on each pipe. The permit is given once all of them are bound: the grant travels over one
// pipe, and the peer may use another. If there are too few windows, permits get them in one order on all
// pipes, so that no two permits wait for each other.
Permits::Answer Bundle::bind(std::uint32_t number, std::span<std::byte> memory) {
  Permit& permit = permits_[number];
  permit.place.address = reinterpret_cast<std::uintptr_t>(memory.data());
  for (const auto& lane : lanes_) {
    if (lane->state == Lane::State::open) permit.lanes.push_back(lane.get());
  }
  permit.binding = permit.lanes;
  for (Lane* const lane : std::vector(permit.lanes)) {
    RemotePlace later;
    if (lane->state == Lane::State::open) lane->pipe->permit(number, memory, nullptr, later);
    if (closed_) break;
  }
  return Permits::Answer::later;
}

void Bundle::on_permitted(Lane& lane, std::uint32_t number, std::uint32_t key) {
  const auto found = permits_.find(number);
  if (found == permits_.end() || std::erase(found->second.binding, &lane) == 0) return;
  add_key(found->second.place, pairs_[lane.index].ours, key);
  report(number);
}

bool Bundle::revoke(std::uint32_t number) {
  const auto found = permits_.find(number);
  if (found == permits_.end()) return true;
  for (Lane* const lane : std::vector(found->second.lanes)) {
    const bool never_bound = lane->state == Lane::State::open && lane->pipe->revoke(number);
    // If the last pipe has broken, everything has ended.
    if (closed_) return false;
    if (never_bound) std::erase(found->second.lanes, lane);
  }
  found->second.revoked = true;
  if (!found->second.lanes.empty()) return false;
  permits_.erase(found);
  return true;
}

void Bundle::on_revoked(Lane& lane, std::uint32_t number) {
  const auto found = permits_.find(number);
  if (found == permits_.end() || std::erase(found->second.lanes, &lane) == 0) return;
  report(number);
}

// The windows of a pipe end with it.
void Bundle::drop_windows(Lane& lane) {
  std::vector<std::uint32_t> changed;
  for (auto& [number, permit] : permits_) {
    const bool had_to_bind = std::erase(permit.binding, &lane) > 0;
    if (std::erase(permit.lanes, &lane) > 0 && (had_to_bind || permit.revoked)) changed.push_back(number);
  }
  for (const std::uint32_t number : changed) report(number);
}

// Reports that a permit has been given, or is over, if that is so.
void Bundle::report(std::uint32_t number) {
  const auto found = permits_.find(number);
  if (closed_ || found == permits_.end()) return;
  const Permit& permit = found->second;
  if (permit.revoked && permit.lanes.empty()) {
    permits_.erase(found);
    events_.on_revoked(number);
  } else if (!permit.revoked && permit.binding.empty() && !permit.lanes.empty()) {
    events_.on_permitted(number, RemotePlace(permit.place));
  }
}

}  // namespace tutti::verbs
