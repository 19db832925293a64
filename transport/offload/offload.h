#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/memory.h>
#include <tutti/status.h>

#include "core/call.h"
#include "core/fingerprint.h"
#include "transport/driver/driver.h"
#include "transport/peer.h"
#include "transport/registered_memory.h"

namespace tutti {

class OffloadPeers;
class OffloadSession;

// An `Offload` is a library that carries out whole collectives by itself (docs/seams/offload.md). There is
// one object for each rank of a world. Any thread may call it.
class Offload {
 public:
  virtual ~Offload() = default;

  // Returns the name under which `PeerInfo::offloads` has the facts of each rank.
  virtual std::string_view name() const = 0;
  // Returns what the other ranks must know about this one, such as a version and a device. The text is
  // printable, and has at most `max_offload_facts` bytes.
  virtual std::string facts() const = 0;
  // Returns ok, or a status that names two members that cannot work together, and says why. It decides from
  // these arguments only, so that all members decide alike. Every member has facts under `name`, but they may
  // be any printable text.
  virtual Status fits(std::span<const PeerInfo* const> members) const = 0;
  // Returns whether `takes` may return ok for calls on host memory.
  virtual bool takes_host_memory() const { return false; }
  // Returns ok, or why this call is not for it. It decides from the argument only, so that all ranks decide
  // alike.
  virtual Status takes(const Fingerprint& call) const = 0;
  // Opens a session for the communicator of these peers. All members call it. It may block until the peers'
  // deadline, or until their status is an error.
  virtual Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) = 0;
  // Does what `Transport::add_memory` does, for the memory of a host or a device.
  virtual Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte>) {
    return std::unique_ptr<RegisteredMemory>();
  }
};

// `OffloadPeers` are the members of the communicator for which a session is opened.
class OffloadPeers {
 public:
  virtual ~OffloadPeers() = default;
  // Return this rank's number in the communicator, and the members in the order of their ranks there.
  virtual int rank() const = 0;
  virtual std::span<const PeerInfo* const> members() const = 0;
  // Returns the memory in which this rank's buffers of the first call lie.
  virtual Memory memory() const = 0;
  // Returns the texts of all members, in the order of their ranks. All members must pass texts of equal
  // length. This is a collective of the communicator; it blocks.
  virtual Result<std::vector<std::byte>> exchange(std::span<const std::byte> mine) = 0;
  // Returns ok, or why the communicator has failed meanwhile.
  virtual Status status() const = 0;
  virtual Deadline deadline() const = 0;
};

// An `OffloadCall` is one call that a library carries out. The counts of `call` are valid until
// `OffloadSession::issue` returns, and all else until `done`.
struct OffloadCall {
  Call call;
  void* stream = nullptr;  // the call begins after what is in this stream now; null: it begins at once
  // The library calls this once, on any thread, when nothing touches the buffers any more.
  void (*done)(OffloadCall& call, const Status& status) = nullptr;
};

// An `OffloadSession` is one communicator's part of an offload. Only the driving thread calls it, except
// where a comment says otherwise.
class OffloadSession : public Pollable {
 public:
  // Starts calls as one group, and never blocks. The calls of all groups are in the order in which the
  // communicator numbers them. Any thread may call, one at a time.
  virtual void issue(std::span<OffloadCall* const> calls) = 0;
  // Gives up all calls, and those that are issued later. Returns at once; `done` of each call follows soon,
  // with any status. Called at most once.
  virtual void abort(const Status& why) = 0;
  // Makes `stream` wait until the call is over. Does nothing if `done` has been called.
  virtual Status wait_on(OffloadCall& call, void* stream) = 0;
};

}  // namespace tutti
