#include <algorithm>
#include <utility>

#include "transport/verbs/pipe.h"

// This file permits the peer of a pipe to write into memory, and revokes the permits, by memory windows
// (docs/rdma.md).
namespace tutti::verbs {

Permits::Answer Pipe::permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                             RemotePlace& place) {
  const Region* const region = queue_pair_ == nullptr ? nullptr : memory_.region_of(memory, own);
  if (region == nullptr) return Permits::Answer::never;
  if (!rail_.domain()->has_windows()) {
    // Only staging chunks, and memory that is registered for one operation, have a key that peers may use.
    if (!region->is_writable()) return Permits::Answer::never;
    place = {.address = reinterpret_cast<std::uintptr_t>(memory.data()), .key = region->remote_key()};
    return Permits::Answer::given;
  }
  Windows::Window* const window = windows_.waiting.empty() ? windows_.free() : nullptr;
  if (window == nullptr && windows_.empty()) return Permits::Answer::never;
  const Windows::Waiting wanted = {number, memory, region->raw()};
  if (window != nullptr && bind(*window, wanted, place) && !options_.shared) return Permits::Answer::given;
  // If the window could not be bound, the pipe is broken, and nothing is given any more.
  if (window == nullptr) windows_.waiting.push_back(wanted);
  return Permits::Answer::later;
}

// Posts the request that binds the window. A packet that is sent later over this pipe arrives only after the
// window is bound, since the device keeps the order of requests.
bool Pipe::bind(Windows::Window& window, const Windows::Waiting& wanted, RemotePlace& place) {
  const std::uint32_t key = ibv_inc_rkey(window.raw->rkey);
  const auto address = reinterpret_cast<std::uintptr_t>(wanted.memory.data());
  ibv_send_wr request = {};
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window.raw;
  request.bind_mw.rkey = key;
  request.bind_mw.bind_info = {wanted.region, address, wanted.memory.size(), IBV_ACCESS_REMOTE_WRITE};
  if (!post(request, {.bound = options_.shared ? &window : nullptr})) return false;
  window.raw->rkey = key;
  window.permit = wanted.permit;
  window.address = address;
  window.in_use = true;
  place = {.address = address, .key = key};
  return true;
}

bool Pipe::revoke(std::uint32_t number) {
  const auto waits = std::ranges::find(windows_.waiting, number, &Windows::Waiting::permit);
  if (waits != windows_.waiting.end()) {
    windows_.waiting.erase(waits);
    return true;
  }
  Windows::Window* const window = windows_.of(number);
  if (window == nullptr) return true;
  ibv_send_wr request = {};
  request.opcode = IBV_WR_LOCAL_INV;
  request.invalidate_rkey = window->raw->rkey;
  post(request, {.revoked = window});
  return false;
}

// The peer can no longer write by the key of the window. So the window can serve the next permit.
void Pipe::revoked(Windows::Window& window) {
  window.in_use = false;
  events_->on_revoked(window.permit);
  while (queue_pair_ != nullptr && !windows_.waiting.empty()) {
    Windows::Window* const free = windows_.free();
    if (free == nullptr) return;
    const Windows::Waiting next = windows_.waiting.front();
    windows_.waiting.pop_front();
    RemotePlace place;
    if (!bind(*free, next, place)) return;
    if (!options_.shared) events_->on_permitted(next.permit, place);
  }
}

}  // namespace tutti::verbs
