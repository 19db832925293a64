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
#include "transport/allocated_memory.h"
#include "transport/driver/driver.h"
#include "transport/offload/copier.h"
#include "transport/offload/host_calls.h"
#include "transport/offload/stream_wait.h"
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

  // Returns the library's name. `PeerInfo::offloads` has the facts of each rank under this name.
  virtual std::string_view name() const = 0;
  // Returns what the other ranks must know about this rank, such as a version and a device. The text is
  // printable, and has at most `max_offload_facts` bytes.
  virtual std::string facts() const = 0;
  // Returns ok if these members can work together. Otherwise the status names two members that cannot, and
  // says why. The result depends only on the argument, so it is the same on all members. Every member has
  // facts under `name()`. But the facts may be any printable text, so `fits` must not rely on their form.
  virtual Status fits(std::span<const PeerInfo* const> members) const = 0;
  // Returns whether `takes` may return ok for calls on host memory.
  virtual bool takes_host_memory() const { return false; }
  // Returns ok if the library takes this call of a communicator with these members, and otherwise
  // the reason. `fits` has returned ok for these members. The result depends only on the arguments,
  // so it is the same on all ranks.
  virtual Status takes(const Fingerprint& call, std::span<const PeerInfo* const> members) const = 0;
  // Returns ok if a call on this memory may follow the stream (`OffloadCall::stream`). Otherwise the call is
  // refused on this rank only, and does not count as an operation. An error of the device is not reported
  // here but by the session, since all ranks must learn of it.
  virtual Status can_follow(void*, Memory) const { return {}; }
  // Opens a session for the communicator of these peers. All members call it. It may block, but must
  // return soon after `peers.deadline()` has passed or `peers.status()` has become an error.
  virtual Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) = 0;
  // Does what `Transport::add_memory` does, for the memory of a host or a device.
  virtual Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte>) {
    return std::unique_ptr<RegisteredMemory>();
  }
  // Allocates zeroed memory of a device, and registers it as `add_memory` does. Fails with `unsupported` if
  // the library has no memory of such a device, and with `resource_exhausted` if no memory is left. The
  // function may wait for the device, so the calling thread must not drive.
  virtual Result<std::unique_ptr<AllocatedMemory>> allocate(std::size_t, Memory) {
    return Status(Code::unsupported, "it has no memory of devices");
  }
  // Makes a copier for the memory of a device, so that messages can use this memory. Fails with `unsupported`
  // if the library copies nothing for others, and with `invalid_argument` if there is no such device. The
  // function and the copier's destructor may wait for the device, so the calling thread must not drive.
  virtual Result<std::unique_ptr<Copier>> copier(Memory) {
    return Status(Code::unsupported, "it copies nothing for messages");
  }
};

// `OffloadPeers` are the members of the communicator for which a session is opened.
class OffloadPeers {
 public:
  virtual ~OffloadPeers() = default;
  // Returns this rank's number in the communicator.
  virtual int rank() const = 0;
  // Returns all members, in the order of their ranks in the communicator.
  virtual std::span<const PeerInfo* const> members() const = 0;
  // The session is opened for a certain call. Returns the memory (of the host or a device) that holds this
  // rank's buffers of that call.
  virtual Memory memory() const = 0;
  // Sends `mine` to all members, and returns what all members have sent, in the order of their ranks. All
  // members must send the same number of bytes. This is a collective of the communicator, and it blocks.
  virtual Result<std::vector<std::byte>> exchange(std::span<const std::byte> mine) = 0;
  // Makes a private communicator of the same members, on which the session may issue ordinary collectives on
  // host memory. All members must call it. Like `exchange`, it blocks.
  virtual Result<std::unique_ptr<HostCalls>> host_calls() = 0;
  // Returns ok, or why the communicator has failed meanwhile.
  virtual Status status() const = 0;
  virtual Deadline deadline() const = 0;
};

// An `OffloadCall` is one call that a library carries out. The counts in `call` are valid until
// `OffloadSession::issue` returns, and everything else until `done` is called.
struct OffloadCall {
  Call call;
  // The call begins after all work that is in this stream when the call is issued. If the stream is
  // null, the call begins at once.
  void* stream = nullptr;
  // The library calls `done` once, on any thread, when nothing touches the buffers any more.
  void (*done)(OffloadCall& call, const Status& status) = nullptr;
};

// An `OffloadSession` is this rank's side of the library's work for one communicator. Only the driving thread
// calls it, with two exceptions: `issue`, and the destructor, which runs on a thread that does not drive.
class OffloadSession : public Pollable {
 public:
  // Starts these calls as one group. Blocks only while a caller's stream has no room for more work. Calls are
  // issued in the order in which the communicator numbers them. Any thread may call `issue`, but only one at
  // a time.
  virtual void issue(std::span<OffloadCall* const> calls) = 0;
  // Gives up all calls, including those that are issued later. Returns at once. Soon afterwards the library
  // calls `done` for each call, with any status, even ok. `abort` is called at most once.
  virtual void abort(const Status& why) = 0;
  // Returns a function that makes `stream` wait until the call has ended. The function is empty if `done` has
  // been called. If the session has been given up, `wait_on` may return the reason instead. `wait_on` itself
  // adds nothing to the stream, since that could block.
  virtual Result<StreamWait> wait_on(OffloadCall& call, void* stream) = 0;
};

}  // namespace tutti
