#pragma once

#include <chrono>
#include <memory>

#include "transport/meeting/linked_channel.h"
#include "transport/shm/connector.h"
#include "transport/shm/context.h"
#include "transport/shm/pipe.h"

namespace tutti::shm {

// An shm `Channel` moves frames over a pair of rings in shared memory. `send` writes its frames at once if
// there is room. `poll` reads the peer's frames straight out of the ring. The two ranks set up the rings (a
// `Pipe`) over a local socket (a `Link`).
class Channel final : public meeting::LinkedChannel<Context, Connector, Link, LinkEvents, Pipe, Note> {
 public:
  Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout);
  ~Channel() override;

  // Answers a peer that has said hello: accepts its pipe, or sends the reason for refusing it.
  void accept(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link);

  // The transport calls these while the pipe is open.
  bool poll();
  bool prepare_sleep();
  void cancel_sleep() { pipe_->cancel_sleep(); }

  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;

 private:
  void kick() override;
  void close_pipe() override;
  void start_connecting() override;
  void pipe_opened() override;
  void release_pipe() override { pipe_.reset(); }
  // Makes a pipe from the descriptors that came with a hello: the memory, and the peer's bell.
  Result<std::unique_ptr<Pipe>> take_pipe(const Note& hello, std::vector<Descriptor>& descriptors);
  void write();
  bool write_some(OutgoingFrame& frame);
  void publish();
  void read();
  void read_some(std::span<const std::byte> bytes);
  Status broke(const char* what) const;

  OutgoingFrame* frame_ = nullptr;  // being written
  bool full_ = false;               // whether a frame waits for room in the ring
  bool writing_ = false;            // whether write() is on the stack already
  bool reading_ = false;
};

}  // namespace tutti::shm
