#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tutti/deadline.h>

#include "control/liveness/address.h"
#include "control/liveness/overlay.h"
#include "control/plane.h"
#include "transport/peer.h"

namespace tutti {

struct LivenessOptions {
  std::string bind;       // a literal address of this host
  std::string advertise;  // the address to publish; empty means `bind`
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::chrono::nanoseconds limit{std::chrono::seconds(10)};
  security::SharedCredentials credentials = {};                   // null if connections have no guard
  std::chrono::nanoseconds hello_limit{std::chrono::seconds(5)};  // time for a new connection's hello
};

// `Liveness` is the control plane over TCP (docs/protocol.md): a thread that runs an Overlay.
class Liveness final : public ControlPlane {
 public:
  // Makes a control plane that already listens for connections.
  static Result<std::unique_ptr<Liveness>> create(const LivenessOptions& options);
  ~Liveness() override;

  // Returns the address to publish in the PeerInfo, under the name `liveness::address_name`.
  std::string address() const { return liveness::format(address_); }
  // Says which rank this is, and which peers there are. It must be called before `start`.
  void meet(int rank, std::vector<PeerInfo> peers);
  // Waits until this rank is linked with all its neighbours that are still alive. Returns `timeout` if a link
  // is missing at the deadline. The error's message says which rank could not be reached, at which address,
  // and why. If waiting is useless, returns at once: `resource_exhausted` if descriptors have run out, or
  // `unauthenticated` if this rank or a neighbour could not prove its identity.
  Status wait_linked(Deadline deadline);

  void start(ControlEvents& events) override;
  void stop() override;
  void publish(std::uint32_t topic, std::uint64_t key, std::string body) override;
  void send(int rank, std::uint32_t topic, std::string body) override;
  void give_up(int rank, const Status& why) override;
  void set_generation(std::uint32_t generation) override;

 private:
  using Command = std::function<void(liveness::Overlay&)>;

  Liveness(LivenessOptions options, Descriptor listener);
  void post(Command command);
  void run(liveness::Overlay& overlay);
  void judge_links(const liveness::Overlay& overlay);
  bool forked() const;

  const LivenessOptions options_;
  Descriptor listener_;
  Descriptor wake_;
  liveness::Address address_;
  liveness::OverlayOptions overlay_options_;
  const std::uint32_t born_;
  std::atomic<std::uint32_t> judged_{0};  // 1 if `wait_linked` must return `unlinked_` at once
  std::mutex mutex_;
  std::vector<Command> commands_;
  Status unlinked_{Code::timeout, "the control thread has not run yet"};
  std::unique_ptr<liveness::Overlay> overlay_;  // once `thread_` runs, only that thread uses it
  std::thread thread_;
};

}  // namespace tutti
