#pragma once

#include <chrono>
#include <memory>

#include "transport/shm/connector.h"
#include "transport/shm/context.h"
#include "transport/shm/pipe.h"
#include "transport/stream/stream_channel.h"

namespace tutti::shm {

// An shm `Channel` moves frames over a pair of rings in shared memory. `send` writes its frames at once if
// there is room. `poll` reads the peer's frames straight out of the ring. The two ranks set up the rings (a
// `Pipe`) over a local socket (a `Link`). The link stays open, since the end of the link shows that the peer
// has died.
class Channel final : public StreamChannel, public LinkEvents, public ConnectorEvents, public Timer {
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
  void on_connected(std::unique_ptr<Link> link, std::unique_ptr<Pipe> pipe) override;
  void on_refused(const Status& why) override;
  void on_connect_failed(const Status& why) override;
  void on_timer() override;

 private:
  enum class Stage { closed, connecting, confirming, open };

  void kick() override;
  void close_pipe() override;
  // Returns the note that refuses a peer that has said hello, or null if the peer is accepted.
  std::unique_ptr<Note> objection() const;
  // Makes a pipe from the descriptors that came with a hello: the memory, and the peer's bell.
  Result<std::unique_ptr<Pipe>> take_pipe(const Note& hello, std::vector<Descriptor>& descriptors);
  void open();
  void write();
  bool write_some(OutgoingFrame& frame);
  void publish();
  void read();
  void read_some(std::span<const std::byte> bytes);
  Status broke(const char* what) const;

  Context& context_;
  const std::chrono::nanoseconds connect_timeout_;
  Stage stage_ = Stage::closed;
  bool over_ = false;                     // close_pipe was called
  std::unique_ptr<Connector> connector_;  // while connecting
  std::unique_ptr<Link> link_;            // while confirming and open
  std::unique_ptr<Pipe> pipe_;            // from confirming on, until the channel is destroyed

  OutgoingFrame* frame_ = nullptr;  // being written
  bool full_ = false;               // whether a frame waits for room in the ring
  bool writing_ = false;            // whether write() is on the stack already
  bool reading_ = false;
};

}  // namespace tutti::shm
