#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "transport/driver/timers.h"
#include "transport/mpi/context.h"
#include "transport/mpi/pipe.h"
#include "transport/stream/stream_channel.h"

namespace tutti::mpi {

// An MPI `Channel` moves frames by messages of MPI. To connect, each of the two ranks sends the other a
// hello. The rank that receives a hello first answers with its own.
class Channel final : public StreamChannel, private Timer {
 public:
  Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout);
  ~Channel() override;

  // A packet of this peer has arrived. Its head has been checked by `Context::is_from_peer`, and its kind is
  // `hello` only if the owner of the transport has accepted the peer.
  void on_packet(const PacketHead& head, std::span<const std::byte> bytes);
  // MPI can no longer be used.
  void on_broken(const Status& why);

 private:
  enum class Stage { closed, greeting, open };

  void kick() override;
  void close_pipe() override;
  void on_timer() override;
  bool greet();
  void on_hello(const PacketHead& hello);
  void on_refusal(const std::string& why);
  void take_frames(const PacketHead& head, std::span<const std::byte> bytes);
  void write();
  Status blame(Code code, const std::string& what) const;

  Context& context_;
  const std::chrono::nanoseconds connect_timeout_;
  std::optional<Pipe> pipe_;  // nothing if the peer has published no valid address
  Stage stage_ = Stage::closed;
  bool over_ = false;               // close_pipe was called
  bool peer_ended_ = false;         // the peer has closed the connection
  OutgoingFrame* frame_ = nullptr;  // waits for room
  bool writing_ = false;            // write() is on the stack
};

}  // namespace tutti::mpi
