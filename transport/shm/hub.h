#pragma once

#include <map>
#include <memory>
#include <optional>

#include "core/security/guard.h"
#include "transport/driver/driver.h"
#include "transport/driver/timers.h"
#include "transport/shm/address.h"
#include "transport/shm/bell.h"
#include "transport/shm/factory.h"
#include "transport/shm/note.h"
#include "transport/transport.h"

namespace tutti::shm {

// A `Hub` is what the parts of one shm transport share. Once started, only the driving thread touches it.
struct Hub {
  explicit Hub(const Options& from) : options(from) {}

  // These are for the driving thread, as everything here.
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    return driver->watch(descriptor, events, handler);
  }
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    driver->rewatch(descriptor, events, handler);
  }
  void unwatch(int descriptor) {
    driver->assert_driven();
    driver->unwatch(descriptor);
  }
  // One descriptor per peer is enough, however many segments are shared with it. Null if this is no bell.
  SharedRope rope_of(int rank, Descriptor bell_of_rank) { return keep(ropes[rank], std::move(bell_of_rank)); }
  // From the leader of a segment, who might hand out a bell of its own instead. It is taken for segments
  // only, and not where the rank itself has handed over one.
  SharedRope rope_by_hearsay(int rank, Descriptor bell) {
    if (SharedRope own = ropes[rank].lock()) return own;
    return keep(hearsay[rank], std::move(bell));
  }
  static SharedRope keep(std::weak_ptr<const BellRope>& known, Descriptor bell) {
    if (SharedRope rope = known.lock()) return rope;
    SharedRope rope = BellRope::from(std::move(bell));
    known = rope;
    return rope;
  }
  // Nothing if it is of no use.
  std::optional<Address> published_address(int rank) const {
    const auto& published = owner->peer(rank).addresses;
    const auto text = published.find("shm");
    return text == published.end() ? std::nullopt : parse_address(text->second);
  }
  // The first note to a peer.
  Note hello(NoteKind kind, int to, const Address& theirs) const {
    Note note;
    note.kind = kind;
    note.from = static_cast<std::uint32_t>(owner->rank());
    note.to = static_cast<std::uint32_t>(to);
    note.from_nonce = address.nonce;
    note.to_nonce = theirs.nonce;
    return note;
  }
  security::Guard guard_to(int rank, Deadline deadline) const {
    return security::Guard::connecting(options.credentials,
                                       {security::Service::memory, static_cast<std::uint32_t>(owner->rank()),
                                        static_cast<std::uint32_t>(rank)},
                                       deadline);
  }
  security::Guard guard_for_stranger() const {
    return security::Guard::accepting(options.credentials, security::Service::memory,
                                      static_cast<std::uint32_t>(owner->rank()),
                                      Deadline::after(options.handshake_timeout));
  }
  std::string describe(int rank) const { return owner->peer(rank).describe(); }

  const Options options;
  Timers timers;
  Bell bell;
  Address address;  // ours, as published
  Driver* driver = nullptr;
  TransportOwner* owner = nullptr;
  MessageLimits limits;
  std::map<int, std::weak_ptr<const BellRope>> ropes;    // by the ranks themselves
  std::map<int, std::weak_ptr<const BellRope>> hearsay;  // by leaders of segments
};

}  // namespace tutti::shm
