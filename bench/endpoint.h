#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/driver/driver.h"
#include "transport/mesh/mesh.h"

namespace tutti::perf {

struct EndpointOptions {
  int rank = 0;
  std::vector<PeerInfo> peers;
  std::unique_ptr<Transport> transport;
  std::size_t bytes = 8;
  std::chrono::microseconds spin{50};
};

// An `Endpoint` is one of two ranks that exchange messages over a transport. It uses Mesh and Driver
// directly, without a communicator. A thread that waits for a message also drives the transport. A failure
// ends the program.
class Endpoint final : private ContextEvents {
 public:
  explicit Endpoint(EndpointOptions options);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Makes one round trip. Rank 0 sends first.
  void trip();
  // Returns the first byte of the buffer. The last message was received into this buffer, and the next one is
  // sent from it.
  std::byte& first_byte() { return memory_.front(); }

 private:
  template <class Op>
  struct Waited : Op {
    Driver* driver = nullptr;
    std::atomic<std::uint32_t> over{0};
    void arm(Driver& by);
  };

  void send();
  void recv();
  Known operation(std::uint64_t) const override { return {&call_, false}; }
  void on_mismatch(int, std::uint64_t, const Fingerprint*, const Status& why) override { report(why); }
  void on_abort(int, const Status& why) override { report(why); }
  void on_peer_down(int, const Status& why) override { report(why); }
  static void report(const Status& why);

  Driver driver_;
  Mesh mesh_;
  const int peer_;
  const Fingerprint call_;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> memory_;
  Waited<SendOp> sending_;
  Waited<RecvOp> receiving_;
};

}  // namespace tutti::perf
