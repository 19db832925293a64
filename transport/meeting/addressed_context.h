#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/security/guard.h"
#include "transport/meeting/address_text.h"
#include "transport/message_limits.h"
#include "transport/transport_context.h"

namespace tutti::meeting {

// An `AddressedContext` is the context of a transport that publishes an address and accepts connections. It
// says who this rank is, and recognizes peers. `Address` has a `nonce` and `limits`. The function `published`
// returns the address of a peer, or nothing if the peer has published no valid one. A hello is any message
// with the members `from`, `to`, `from_nonce` and `to_nonce`.
template <class Address, std::optional<Address> (*published)(const PeerInfo&)>
struct AddressedContext : TransportContext {
  AddressedContext(security::Service guarded, security::SharedCredentials ours)
      : service(guarded), credentials(std::move(ours)) {}

  // Returns the limits of messages between this rank and a peer.
  MessageLimits limits_with(int rank) const {
    const auto theirs = published(peer(rank));
    return theirs ? minimum(address.limits, theirs->limits) : address.limits;
  }
  // Returns the guard of a connection from this rank to the rank `to`.
  security::Guard guard_to(int to, Deadline deadline) const {
    return security::Guard::connecting(
        credentials, {service, static_cast<std::uint32_t>(owner->rank()), static_cast<std::uint32_t>(to)},
        deadline);
  }
  // Writes the sender and the receiver into a hello: this rank, and the rank `to`, whose address is `theirs`.
  template <class Hello>
  void introduce(Hello& hello, int to, const Address& theirs) const {
    hello.from = static_cast<std::uint32_t>(owner->rank());
    hello.to = static_cast<std::uint32_t>(to);
    hello.from_nonce = address.nonce;
    hello.to_nonce = theirs.nonce;
  }
  // Returns whether a hello goes from another rank of this job to this rank.
  template <class Hello>
  bool is_for_us(const Hello& hello) const {
    const auto rank = static_cast<std::uint32_t>(owner->rank());
    return hello.to == rank && hello.from != rank && hello.from < static_cast<std::uint32_t>(owner->size());
  }
  // Returns whether a hello is for us, and both of its nonces are right. The hello then comes from the
  // process that has published itself as rank `hello.from`, and is meant for this process.
  template <class Hello>
  bool is_from_peer(const Hello& hello) const {
    if (!is_for_us(hello) || hello.to_nonce != address.nonce) return false;
    const auto theirs = published(peer(static_cast<int>(hello.from)));
    return theirs && theirs->nonce == hello.from_nonce;
  }

  // Returns ok, or an error if one of the two ranks cannot reach the endpoints of the other. Both ranks get
  // the same answer, since the condition covers the addresses of both.
  Status endpoints_reach(const PeerInfo& other, const Address& theirs) const {
    if (owner == nullptr || other.shares_network_with(peer(owner->rank()))) return {};
    if (!all_loopback(theirs.endpoints) && !all_loopback(address.endpoints)) return {};
    return Status(Code::unreachable,
                  other.describe() +
                      " is on another host or network namespace, and one of the two ranks has "
                      "loopback addresses only",
                  other.rank);
  }

  const security::Service service;
  const security::SharedCredentials credentials;  // null if connections have no guard
  Address address;                                // ours, as published
};

}  // namespace tutti::meeting
