#include "transport/shm/channel.h"

#include <algorithm>
#include <cstring>

#include "core/error_text.h"

namespace tutti::shm {
namespace {

// The writer publishes its bytes each time it has written this many. So the peer can read them while the
// writer writes more.
constexpr std::size_t publish_bytes = 16 * 1024;
// At most this many bytes are read at a time. Between two reads, `release` can give room back to the peer.
constexpr std::size_t consume_bytes = 16 * 1024;
// After this many bytes from one peer, other peers have their turn.
constexpr std::size_t read_budget = 512 * 1024;

}  // namespace

Channel::Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout)
    : LinkedChannel(context, peer, connect_timeout) {}

Channel::~Channel() {
  if (!over_) Channel::close_pipe();
  context_.channels.by_peer.remove(peer(), *this);
}

// --- connecting ---

void Channel::kick() { stage_ == Stage::open ? write() : connect_if_needed(); }

void Channel::start_connecting() {
  connect_with(std::make_unique<Connector>(context_, peer(), connect_timeout_, *this));
}

Result<std::unique_ptr<Pipe>> Channel::take_pipe(const Note& hello, std::vector<Descriptor>& descriptors) {
  SharedRope rope = context_.rope_of(peer(), std::move(descriptors[1]));
  if (rope == nullptr) return broke("it sent a descriptor that is not a bell");
  auto pipe = Pipe::map(std::move(descriptors[0]), hello.bytes, hello.proof);
  if (!pipe.ok()) return pipe;
  (*pipe)->close_descriptor();
  (*pipe)->set_rope(std::move(rope));
  return pipe;
}

void Channel::accept(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) {
  if (const auto note = objection()) return link->send_last(*note);
  take_link(std::move(link));
  if (descriptors.size() != 2) {
    link_->send_last(answer_about(Status(Code::protocol_error, "the hello came without its descriptors")));
    return start_over();
  }
  auto mapped = take_pipe(hello, descriptors);
  if (!mapped.ok()) {
    link_->send_last(answer_about(mapped.status()));
    return on_refused(mapped.status());
  }
  pipe_ = *std::move(mapped);
  Note answer;
  answer.kind = NoteKind::welcome;
  const int bell = context_.bell.rope()->descriptor();
  if (const int error = link_->send(answer, {&bell, 1}); error != 0) {
    const Status why(Code::resource_exhausted, error_text(error));
    link_->send_last(answer_about(why));
    on_refused(why);
  }
}

void Channel::on_note(Link&, const Note& note, std::vector<Descriptor>) {
  if (stage_ == Stage::confirming && note.kind == NoteKind::go) {
    open();
  } else if (stage_ == Stage::confirming && note.kind == NoteKind::refused) {
    on_refused(note.why.failure(peer()));
  } else {
    pipe_failed(broke("it sent an unexpected note"));
  }
}

void Channel::on_broken(Link&, const std::string& why) {
  // The peer may have written frames that say why it left. All of them are in the ring, so this reads as many
  // bytes as the ring can hold, but no more. The loop ends even if the peer keeps writing.
  const std::uint64_t end = stage_ == Stage::open ? pipe_->in().position() + pipe_->in().size() : 0;
  while (stage_ == Stage::open && pipe_->in().has_news() && pipe_->in().position() < end) read();
  if (!over_) pipe_failed(blame(Code::peer_lost, ": " + why));
}

void Channel::pipe_opened() {
  context_.channels.open.push_back(this);
  write();
}

// The pipe's memory stays until the channel is destroyed, since a caller further up the stack may still read
// it.
void Channel::close_pipe() {
  if (stage_ == Stage::open) {
    pipe_->cancel_sleep();
    context_.channels.closed(*this);
  }
  close_link();
  frame_ = nullptr;
}

// --- polling ---

bool Channel::poll() {
  bool did = false;
  pipe_->in().expect();
  if (pipe_->in().has_news()) {
    read();
    did = true;
  }
  if (full_ && stage_ == Stage::open && pipe_->out().has_room()) {
    write();
    did = true;
  }
  return did;
}

bool Channel::prepare_sleep() {
  pipe_->announce_sleep();
  return pipe_->in().has_news() || (full_ && pipe_->out().has_room());
}

// --- writing ---

void Channel::write() {
  // The loop below may be on the stack already: writing a frame may complete an operation, whose `done` may
  // send another message. In that case the loop finds the new message itself, so this call returns.
  if (writing_) return;
  writing_ = true;
  full_ = false;
  while (stage_ == Stage::open) {
    if (frame_ == nullptr) frame_ = next_frame();
    if (frame_ == nullptr) break;
    if (!write_some(*frame_)) {
      full_ = true;
      break;
    }
    if (frame_->written < frame_header_bytes + frame_->payload.size()) continue;
    OutgoingFrame& written = *frame_;
    frame_ = nullptr;
    frame_written(written);
  }
  writing_ = false;
  if (stage_ != Stage::open) return;
  publish();
  if (pipe_->out().broken()) pipe_failed(broke("it wrote an impossible position in our ring"));
}

// Writes a header, or a piece of payload. Returns false if there is no room.
bool Channel::write_some(OutgoingFrame& frame) {
  RingWriter& out = pipe_->out();
  const std::span<std::byte> room = out.room();
  if (room.empty()) return false;
  if (frame.written == 0) {
    std::memcpy(room.data(), frame.header.data(), frame_header_bytes);
    frame.written = frame_header_bytes;
    out.advance(frame_header_bytes);
    return true;
  }
  const std::span<const std::byte> left = frame.payload.subspan(frame.written - frame_header_bytes);
  const std::size_t bytes = std::min({left.size(), room.size(), publish_bytes});
  std::memcpy(room.data(), left.data(), bytes);
  frame.written += bytes;
  out.advance(bytes);
  if (out.unpublished() >= publish_bytes) publish();
  return true;
}

void Channel::publish() {
  if (!pipe_->out().has_unpublished()) return;
  pipe_->out().publish();
  pipe_->wake_peer();
}

// --- reading ---

void Channel::read() {
  if (reading_) return;
  reading_ = true;
  for (std::size_t budget = read_budget; stage_ == Stage::open && budget > 0;) {
    RingReader& in = pipe_->in();
    const std::span<const std::byte> bytes = in.readable();
    if (bytes.empty()) break;
    const std::size_t before = bytes.size();
    read_some(bytes);
    budget -= std::min(budget, before);
    if (in.owes_room() && stage_ == Stage::open) {
      in.release();
      pipe_->wake_peer();
    }
  }
  reading_ = false;
  if (stage_ == Stage::open && pipe_->in().broken()) {
    pipe_failed(broke("it wrote an impossible position in its ring"));
  }
}

// Reads a header, or a piece of payload.
void Channel::read_some(std::span<const std::byte> bytes) {
  RingReader& in = pipe_->in();
  if (const std::size_t left = payload_left(); left > 0) {
    const std::size_t taken = std::min({left, bytes.size(), consume_bytes});
    in.advance(taken);
    consume(bytes.first(taken));
    return;
  }
  // The header is copied before it is checked, since the peer could still change it.
  EncodedFrameHeader copy;
  std::memcpy(copy.data(), bytes.data(), copy.size());
  in.advance(frame_header_bytes);
  FrameHeader header;
  if (decode(copy, header)) {
    static_cast<void>(begin_frame(header));
  } else {
    pipe_failed(broke("it sent something that is not a frame"));
  }
}

Status Channel::broke(const char* what) const {
  return blame(Code::protocol_error, std::string(" broke the protocol: ") + what);
}

}  // namespace tutti::shm
