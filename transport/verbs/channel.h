#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "transport/meeting/linked_channel.h"
#include "transport/verbs/bundle.h"
#include "transport/verbs/connector.h"
#include "transport/verbs/context.h"
#include "transport/verbs/link.h"
#include "transport/verbs/pipe.h"

namespace tutti::verbs {

// A verbs `Channel` moves frames over a queue pair (a `Pipe`), or over several (a `Bundle`), and writes large
// messages straight into memory that the peer has granted. The two ranks agree on the queue pairs over a TCP
// connection (a `Link`). The link stays open, since its end shows that the peer has died: a queue pair that
// only waits to receive never notices that.
class Channel final : public meeting::LinkedChannel<Context, Connector, Link, LinkEvents, Pipe, Note>,
                      public PipeEvents,
                      public Permits {
 public:
  Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout);
  ~Channel() override;

  // Answers a peer that has said hello: accepts its queue pair, or sends the reason for refusing it.
  void accept(const Note& hello, std::unique_ptr<Link> link);

 private:
  void kick() override { stage_ == Stage::open ? write() : connect_if_needed(); }
  void close_pipe() override;
  void start_connecting() override;
  void pipe_opened() override;
  void release_pipe() override { context_.discard(std::move(pipe_)); }
  void on_note(const Note& note) override;
  void on_broken(const Status& why) override;
  void on_packet(std::span<const std::byte> bytes) override;
  void on_piece(std::uint32_t id) override;
  void on_room() override { write(); }
  void on_written(OutgoingFrame& frame) override { frame_written(frame); }
  void on_permitted(std::uint32_t permit, const RemotePlace& place) override { permitted(permit, place); }
  void on_revoked(std::uint32_t permit) override { revoked(permit); }
  void on_pipe_broken(Code code, const std::string& why) override;

  Answer permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                RemotePlace& place) override {
    if (bundle_ != nullptr) return bundle_->permit(number, memory, own, place);
    return pipe_ == nullptr ? Answer::never : pipe_->permit(number, memory, own, place);
  }
  bool revoke(std::uint32_t number) override {
    if (bundle_ != nullptr) return bundle_->revoke(number);
    return pipe_ == nullptr || pipe_->revoke(number);
  }

  Status take_offer(const Note& hello);
  void cannot(const Status& why);
  void write();
  void take(std::span<const std::byte> bytes);
  Status lost(Code code, const std::string& why) const { return blame(code, ": " + why); }

  // If several pairs of ports are used, the bundle takes the place of the pipe once the channel is open.
  std::unique_ptr<Bundle> bundle_;
  bool offers_ = false;             // whether this side has made the connection
  OutgoingFrame* frame_ = nullptr;  // waits for room
  bool writing_ = false;            // write() is on the stack
};

}  // namespace tutti::verbs
