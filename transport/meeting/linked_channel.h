#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "transport/driver/timers.h"
#include "transport/meeting/connector_events.h"
#include "transport/meeting/crossing.h"
#include "transport/stream/stream_channel.h"

namespace tutti::meeting {

// A `LinkedChannel` is a channel whose two ranks agree on a pipe over a link. It implements how they agree;
// the derived class moves frames. The link stays open as long as the pipe, since the end of the link shows
// that the peer has died.
//
// One side has a connector, which offers a pipe to the peer. The other side takes the link and the offer,
// answers `welcome`, and waits until the peer confirms that both have the pipe (`go`).
//
// The parameters are the transport's own classes of these names. The derived class handles the events of the
// link.
template <class Context, class Connector, class Link, class LinkEvents, class Pipe, class Note>
class LinkedChannel : public StreamChannel,
                      public LinkEvents,
                      public ConnectorEvents<Link, Pipe>,
                      public Timer {
 protected:
  enum class Stage { closed, connecting, confirming, open };

  LinkedChannel(Context& context, int peer, std::chrono::nanoseconds connect_timeout)
      : StreamChannel(peer, *context.owner, context.limits_with(peer)),
        context_(context),
        connect_timeout_(connect_timeout) {}

  // --- the derived class implements ---

  // Makes a connector and passes it to `connect_with`, or calls `pipe_failed`.
  virtual void start_connecting() = 0;
  // Both sides have the pipe, so frames can be sent.
  virtual void pipe_opened() = 0;
  // Releases the pipe, if there is one. The pipe has not been opened.
  virtual void release_pipe() = 0;

  // --- the derived class calls ---

  // Does what `kick` has to do while the channel is not open.
  void connect_if_needed() {
    if (stage_ != Stage::closed) return;
    if (!status().ok() && !has_urgent_frames()) {
      pipe_failed(status());  // closed before there was a connection, so there is no one to say goodbye to
    } else {
      start_connecting();
    }
  }
  void connect_with(std::unique_ptr<Connector> connector) {
    stage_ = Stage::connecting;
    connector_ = std::move(connector);
    connector_->start();
  }
  // Returns the note that refuses a peer that has said hello, or nothing if the peer is accepted.
  std::optional<Note> objection() const {
    const OwnSide own{.gone = over_ || (!status().ok() && !has_urgent_frames()),
                      .connected = stage_ == Stage::open,
                      .connecting = stage_ == Stage::connecting && connector_->in_progress()};
    const Incoming verdict = judge_incoming(owner().rank(), peer(), own);
    if (verdict == Incoming::welcome) return std::nullopt;
    Note note;
    if (verdict == Incoming::wait) {
      note.kind = decltype(note.kind)::wait;
    } else {
      note.why.set(refusal(verdict, own_name()));
    }
    return note;
  }
  // Takes the link of a peer that is accepted, and waits for the peer's confirmation. If there is an earlier
  // link of this peer, it is dropped: a peer that connects again has given up its earlier attempt.
  void take_link(std::unique_ptr<Link> link) {
    start_over();
    link_ = std::move(link);
    link_->set_events(*this);
    stage_ = Stage::confirming;
    context_.timers.set(*this, Deadline::after(connect_timeout_));
  }
  void open() {
    context_.timers.cancel(*this);
    stage_ = Stage::open;
    pipe_opened();
  }
  // Goes back to the beginning: there is neither a link nor a pipe.
  void start_over() {
    context_.timers.cancel(*this);
    connector_.reset();
    link_.reset();
    release_pipe();
    stage_ = Stage::closed;
  }
  // Does the part of `close_pipe` that concerns the link.
  void close_link() {
    over_ = true;
    context_.timers.cancel(*this);
    connector_.reset();
    link_.reset();
    stage_ = Stage::closed;
  }
  // Returns the note that tells the peer why this rank cannot take its offer.
  Note answer_about(const Status& why) const {
    Note note;
    note.why.set(why.with_context("at " + own_name()));
    return note;
  }
  // Returns an error that blames the peer. `what` continues a sentence that begins with the peer.
  Status blame(Code code, const std::string& what) const {
    return Status(code, context_.describe(peer()) + what, peer());
  }

  void on_connected(std::unique_ptr<Link> link, std::unique_ptr<Pipe> pipe) final {
    link_ = std::move(link);
    pipe_ = std::move(pipe);
    link_->set_events(*this);
    connector_.reset();
    open();
  }
  void on_refused(const Status& why) final {
    start_over();
    if (status().ok()) {
      owner().on_unusable(peer(), context_.transport, why);
    } else {
      pipe_failed(why);
    }
  }
  void on_connect_failed(const Status& why) final { pipe_failed(why); }
  void on_timer() final { pipe_failed(blame(Code::unreachable, " did not open its connection in time")); }

  Context& context_;
  const std::chrono::nanoseconds connect_timeout_;
  Stage stage_ = Stage::closed;
  bool over_ = false;                     // close_pipe was called
  std::unique_ptr<Connector> connector_;  // while connecting
  std::unique_ptr<Link> link_;            // while confirming and open
  std::unique_ptr<Pipe> pipe_;            // while confirming and open

 private:
  std::string own_name() const { return context_.describe(owner().rank()); }
};

}  // namespace tutti::meeting
