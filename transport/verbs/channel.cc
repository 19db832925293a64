#include "transport/verbs/channel.h"

#include <utility>

namespace tutti::verbs {

Channel::Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout)
    : LinkedChannel(context, peer, connect_timeout) {
  const std::vector<RailPair> pairs = context.pairs_with(peer);
  if (pairs.size() == 1) {
    write_remotely(context.memory->of(pairs.front().ours), this);
  } else {
    write_remotely(*context.memory, this);
  }
}

Channel::~Channel() {
  if (!over_) Channel::close_pipe();
  context_.channels.remove(peer(), *this);
}

// --- connecting ---

void Channel::start_connecting() {
  auto address = published_by(context_.peer(peer()));
  if (!address || context_.pairs_with(peer()).empty())
    return pipe_failed(lost(Code::unreachable, "it has no usable verbs address"));
  offers_ = true;
  connect_with(std::make_unique<Connector>(context_, peer(), *std::move(address), connect_timeout_, *this));
}

void Channel::accept(const Note& hello, std::unique_ptr<Link> link) {
  if (const auto note = objection()) return link->send(*note);
  take_link(std::move(link));
  offers_ = false;
  const Status taken = take_offer(hello);
  if (taken.code() == Code::unsupported) return cannot(taken);
  if (!taken.ok()) {
    link_->send(answer_about(taken));
    return on_refused(taken);
  }
  Note answer;
  answer.kind = NoteKind::welcome;
  answer.end = pipe_->end();
  link_->send(answer);
}

// Makes a pipe and connects it with the queue pair that the peer offers. Fails with `unsupported` if another
// kind of address may still work.
Status Channel::take_offer(const Note& hello) {
  const std::vector<RailPair> pairs = context_.pairs_with(peer());
  if (hello.rail >= pairs.size()) return Status(Code::protocol_error, "it offers an impossible rail");
  const Gid* const gid = context_.gid_of(pairs[hello.rail].ours, hello.end.kind);
  if (gid == nullptr) return Status(Code::unsupported, "this rank has no address of that kind");
  if (context_.dead_paths.contains(*gid, hello.end))
    return Status(Code::unsupported, "no packet has passed between these addresses before");
  auto pipe = context_.make_pipe(pairs, hello.rail, *gid, *this);
  if (!pipe.ok()) return pipe.status();
  pipe_ = *std::move(pipe);
  const Status connected = pipe_->connect(hello.end);
  if (connected.code() == Code::unsupported) context_.dead_paths.add(*gid, hello.end);
  return connected;
}

// Tells the peer that its kind of address does not work, and waits for the peer's next offer. If none comes,
// this rank connects when it has something to send.
void Channel::cannot(const Status& why) {
  Note note = answer_about(why);
  note.kind = NoteKind::cannot;
  link_->send(note);
  on_broken(why);
}

void Channel::on_note(const Note& note) {
  if (stage_ == Stage::open && bundle_ != nullptr && note.kind >= NoteKind::offer) {
    if (!bundle_->on_note(note)) pipe_failed(lost(Code::protocol_error, "it sent an unexpected note"));
  } else if (stage_ == Stage::confirming && note.kind == NoteKind::go) {
    open();
  } else if (stage_ == Stage::confirming && note.kind == NoteKind::refused) {
    on_refused(note.why.failure(peer()));
  } else if (note.kind == NoteKind::check) {
    if (stage_ == Stage::confirming) link_->send(note);
  } else if (note.kind != NoteKind::go) {
    pipe_failed(lost(Code::protocol_error, "it sent an unexpected note"));
  }
}

void Channel::on_broken(const Status& why) {
  if (stage_ == Stage::confirming) {
    // The peer has ended its attempt, perhaps to try another kind of address.
    start_over();
    if (has_frames()) kick();
    return;
  }
  // The peer may have sent packets that say why it left. They have all arrived, so this function handles them
  // first.
  if (stage_ == Stage::open) context_.drain();
  if (!over_) pipe_failed(lost(Code::peer_lost, why.message()));
}

void Channel::pipe_opened() {
  if (context_.pairs_with(peer()).size() > 1) {
    bundle_ = std::make_unique<Bundle>(context_, peer(), *link_, offers_, *this);
    const std::size_t pair = pipe_->pair();
    bundle_->start(pair, std::move(pipe_));
  } else {
    pipe_->set_events(*this);
  }
  write();
}

// When the queue pairs are destroyed, all work requests of this rank end, and no write of the peer can arrive
// any more. So all remote writes are over.
void Channel::close_pipe() {
  if (bundle_ != nullptr) bundle_->close();
  close_link();
  frame_ = nullptr;
  context_.discard(std::move(pipe_));
  writes_over();
}

// --- packets ---

void Channel::on_pipe_broken(Code code, const std::string& why) {
  if (stage_ == Stage::confirming) return cannot(Status(Code::unsupported, why));
  pipe_failed(lost(code, why));
}

void Channel::write() {
  if (writing_) return;
  writing_ = true;
  while (stage_ == Stage::open) {
    if (frame_ == nullptr) frame_ = next_frame();
    if (frame_ == nullptr) break;
    const Pipe::Outcome outcome = bundle_ != nullptr ? bundle_->write(*frame_) : pipe_->write(*frame_);
    if (outcome == Pipe::Outcome::full) break;
    OutgoingFrame* const frame = std::exchange(frame_, nullptr);
    if (outcome == Pipe::Outcome::left && frame != nullptr) frame_written(*frame);
  }
  writing_ = false;
}

void Channel::on_packet(std::span<const std::byte> bytes) {
  if (stage_ == Stage::confirming) {
    // The peer sends frames only after a packet has gone both ways. So a frame means the same as the peer's
    // note `go`, and may arrive before that note.
    if (bytes.empty()) return pipe_->probe();
    open();
  }
  take(bytes);
}

void Channel::on_piece(std::uint32_t id) {
  if (stage_ != Stage::open || payload_left() > 0)
    return pipe_failed(lost(Code::protocol_error, "it sent a write in the middle of something else"));
  static_cast<void>(piece_written(id));
}

void Channel::take(std::span<const std::byte> bytes) {
  while (stage_ == Stage::open && !bytes.empty()) {
    if (take_from(bytes) || stage_ != Stage::open) continue;
    pipe_failed(lost(Code::protocol_error, "it sent something that is not a frame"));
  }
}

}  // namespace tutti::verbs
