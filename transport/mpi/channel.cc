#include "transport/mpi/channel.h"

#include <algorithm>
#include <utility>

namespace tutti::mpi {
namespace {

// A channel that was closed waits this long for the peer's hello, if it must still tell the peer of a
// failure.
constexpr std::chrono::nanoseconds longest_parting = std::chrono::seconds(1);

}  // namespace

Channel::Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout)
    : StreamChannel(peer, *context.owner, context.limits_with(peer)),
      context_(context),
      connect_timeout_(connect_timeout) {
  if (const auto& theirs = context.address_of(peer))
    pipe_.emplace(context.outbox, context.own_head(), *theirs);
}

Channel::~Channel() {
  if (!over_) Channel::close_pipe();
  context_.channels.remove(peer(), *this);
}

Status Channel::blame(Code code, const std::string& what) const {
  return Status(code, context_.describe(peer()) + what, peer());
}

// --- connecting ---

void Channel::kick() {
  if (stage_ == Stage::open) return write();
  if (over_) return;
  // The peer may have left, too. It does not answer then, so this rank does not wait for the peer's hello
  // only to say goodbye.
  if (!status().ok() && !has_urgent_frames()) return pipe_failed(status());
  if (stage_ == Stage::greeting) {
    if (!status().ok())
      context_.timers.set(*this, Deadline::after(std::min(connect_timeout_, longest_parting)));
    return;
  }
  if (!pipe_) return pipe_failed(blame(Code::unreachable, " has published no usable address of MPI"));
  if (!greet()) return;
  context_.timers.set(*this, Deadline::after(connect_timeout_));
}

// Says hello. Returns false if that has failed.
bool Channel::greet() {
  stage_ = Stage::greeting;
  if (pipe_->tell(PacketKind::hello)) return true;
  on_broken(pipe_->status());
  return false;
}

void Channel::on_timer() { pipe_failed(blame(Code::unreachable, " has not answered through MPI in time")); }

void Channel::on_hello(const PacketHead& hello) {
  if (stage_ == Stage::open || !pipe_->take_hello(hello, context_.options.packet_bytes))
    return pipe_failed(blame(Code::protocol_error, " broke the protocol: it sent an unexpected hello"));
  if (stage_ == Stage::closed && !greet()) return;
  context_.timers.cancel(*this);
  stage_ = Stage::open;
  write();
}

void Channel::on_refusal(const std::string& why) {
  if (stage_ != Stage::greeting) return;
  context_.timers.cancel(*this);
  stage_ = Stage::closed;
  const Status refused = blame(Code::unreachable, " does not connect: " + why);
  if (status().ok()) {
    owner().on_unusable(peer(), context_.transport, refused);
  } else {
    pipe_failed(refused);
  }
}

void Channel::on_broken(const Status& why) {
  if (!over_) pipe_failed(blame(Code::peer_lost, " cannot be reached any more: " + why.message()));
}

// Tells the peer that nothing more comes, unless both have said goodbye: then the peer may have stopped, and
// nobody would receive the packet. The outbox keeps packets that MPI has not sent yet, and packets that still
// arrive are dropped.
void Channel::close_pipe() {
  over_ = true;
  frame_ = nullptr;
  context_.timers.cancel(*this);
  const bool leaving = stage_ == Stage::greeting && status().code() == Code::aborted;
  if (stage_ != Stage::closed && !peer_ended_ && !has_parted())
    pipe_->tell(leaving ? PacketKind::left : PacketKind::end);
  stage_ = Stage::closed;
}

// --- packets ---

void Channel::on_packet(const PacketHead& head, std::span<const std::byte> bytes) {
  if (!pipe_) return;
  if (head.kind == PacketKind::hello) {
    const bool gone = over_ || (!status().ok() && !has_urgent_frames());
    if (!gone) return on_hello(head);
    constexpr std::string_view why = "it has left, or has given up this rank";
    pipe_->tell(PacketKind::refusal, std::as_bytes(std::span(why)));
  } else if (over_) {
    return;
  } else if (head.kind == PacketKind::refusal) {
    on_refusal(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } else if (stage_ != Stage::closed && head.kind == PacketKind::end) {
    peer_ended_ = true;
    pipe_failed(blame(Code::peer_lost, " closed the connection without a goodbye"));
  } else if (stage_ != Stage::closed && head.kind == PacketKind::left) {
    peer_ended_ = true;
    pipe_failed(blame(Code::aborted, " has left"));
  } else if (stage_ == Stage::open) {
    take_frames(head, bytes);
  }
}

void Channel::take_frames(const PacketHead& head, std::span<const std::byte> bytes) {
  if (!pipe_->acknowledge(head.taken))
    return pipe_failed(blame(Code::protocol_error, " broke the protocol: it counts packets wrongly"));
  while (stage_ == Stage::open && !bytes.empty()) {
    if (take_from(bytes) || stage_ != Stage::open) continue;
    pipe_failed(blame(Code::protocol_error, " broke the protocol: it sent something that is not a frame"));
  }
  if (stage_ == Stage::open && head.kind == PacketKind::frame && !pipe_->took_packet())
    on_broken(pipe_->status());
  if (stage_ == Stage::open) write();
}

void Channel::write() {
  if (writing_) return;
  writing_ = true;
  while (stage_ == Stage::open) {
    if (frame_ == nullptr) frame_ = next_frame();
    if (frame_ == nullptr) break;
    const Pipe::Outcome outcome = pipe_->write(*frame_);
    if (outcome == Pipe::Outcome::full) break;
    if (outcome == Pipe::Outcome::broken) {
      on_broken(pipe_->status());
      break;
    }
    context_.touch();
    frame_written(*std::exchange(frame_, nullptr));
  }
  writing_ = false;
}

}  // namespace tutti::mpi
