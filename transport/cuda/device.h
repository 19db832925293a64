#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/memory.h>

#include "transport/cuda/api.h"

namespace tutti::cuda {

// A `Device` is a CUDA device and holds its primary context, which the CUDA runtime and PyTorch use, too.
// Any thread may call it. All handles below must be destroyed before their device.
class Device {
 public:
  // Initializes the driver, unless that has been done. `number` is the device's number in CUDA. Fails with
  // `unsupported` if the driver finds no device at all, and with `invalid_argument` if it does not find this
  // device.
  static Result<std::unique_ptr<Device>> open(const Api& api, int number);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Api& api() const { return api_; }
  int number() const { return number_; }
  // Returns the device's name in errors, such as "CUDA device 3".
  std::string name() const { return "CUDA device " + std::to_string(number_); }
  // Returns the device's address on the host's bus, such as "0000:3b:00.0". It is equal in all processes and
  // containers of the host. The instances of a device (MIG) have the same address.
  Result<std::string> bus_address() const;
  // Returns ok if the stream belongs to this device, and otherwise `invalid_argument`. The default stream
  // belongs to whichever device is current, so this device must be `Current`.
  Status check_stream(StreamHandle stream) const;

  // Returns whether the stream is one of the device's primary context, or the default stream. The device must
  // be `Current`.
  Result<bool> has(StreamHandle stream) const;

  // While a `Current` exists, the device's context is current on the thread that made the object.
  // This thread may then use CUDA even if a stream is being captured elsewhere in the process.
  class Current {
   public:
    explicit Current(const Device& device);
    // Makes a context current that need not be the primary context of a device.
    Current(const Api& api, Context context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    // Returns ok, or the reason why the context is not current. Usually the device has failed, and all its
    // functions fail.
    Status status() const { return status_of(api_, pushed_, "cuCtxPushCurrent"); }

   private:
    const Api& api_;
    const Outcome pushed_;
    int capture_mode_;
  };

 private:
  Device(const Api& api, int number) : api_(api), number_(number) {}

  const Api& api_;
  const int number_;
  Ordinal ordinal_ = 0;
  Context context_ = nullptr;
};

// Returns the compute capability of each device, such as 90 for 9.0. Does not initialize the driver. If the
// program has not initialized it, fails with `unsupported`.
Result<std::vector<int>> capabilities(const Api& api);

// The classes below are handles of a device. The device must be `Current` when a function of a handle is
// called, and when the handle is destroyed.

// A `Stream` does not wait for the default stream, and the default stream does not wait for it.
class Stream {
 public:
  static Result<std::unique_ptr<Stream>> create(const Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamHandle handle() const { return handle_; }

 private:
  Stream(const Api& api, StreamHandle handle) : api_(api), handle_(handle) {}
  const Api& api_;
  const StreamHandle handle_;
};

// Returns the context of a stream. The default stream belongs to whichever context is current. Returns
// `invalid_argument` if there is no such stream.
Result<Context> context_of(const Api& api, StreamHandle stream);
// Returns ok if the stream is not being captured into a graph, and otherwise `unsupported`. For the default
// stream, the result is also `unsupported` if another stream is being captured. The capture remains valid.
// Returns `invalid_argument` if there is no such stream. A device must be `Current`. A handle
// of the default stream means the default stream of that device.
//
// tutti cannot follow a captured stream. If a stream of tutti waited for an event of a captured stream,
// tutti's stream would be captured, too, and its events could not be queried.
Status refuse_capture(const Api& api, StreamHandle stream);
// Does what `Offload::can_follow` does: refuses streams of other devices, and streams that are being
// captured.
Status can_follow(const Api& api, void* stream, Memory memory);

// An `Event` happens when the stream in which it was recorded has done all earlier work.
class Event {
 public:
  static Result<std::unique_ptr<Event>> create(const Device& device);
  // Makes an event and records it in a stream, which may be of another device or context.
  static Result<std::unique_ptr<Event>> create_in(const Api& api, StreamHandle stream);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Records the event in a stream of the context in which the event was made.
  Status record(StreamHandle stream);
  // Makes `stream`, which may be of another device, wait until the event has happened. Returns at once.
  Status hold(StreamHandle stream) const;
  // Returns whether the event has happened, or the error that the device's work has ended with.
  Result<bool> happened() const;

 private:
  static Result<std::unique_ptr<Event>> create(const Api& api);
  Event(const Api& api, EventHandle handle) : api_(api), handle_(handle) {}
  const Api& api_;
  const EventHandle handle_;
};

// A `PinnedMemory` is memory of the host. Every device can copy from it and to it while the host does other
// work.
class PinnedMemory {
 public:
  static Result<std::unique_ptr<PinnedMemory>> create(const Device& device, std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  // Returns the address at which the device sees the memory.
  Address address() const { return address_; }

 private:
  PinnedMemory(const Api& api, std::byte* data, std::size_t size, Address address)
      : api_(api), data_(data), size_(size), address_(address) {}
  const Api& api_;
  std::byte* const data_;
  const std::size_t size_;
  const Address address_;
};

}  // namespace tutti::cuda
