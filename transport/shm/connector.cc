#include "transport/shm/connector.h"

#include <array>
#include <cerrno>

#include "core/error_text.h"
#include "core/random.h"
#include "transport/meeting/crossing.h"

namespace tutti::shm {
namespace {

using std::chrono::milliseconds;

// The next attempt begins after this pause if the peer still has to accept too many connections, or
// if too many descriptors are under way between processes.
constexpr milliseconds pause_when_full{1};

}  // namespace

Connector::Connector(Context& context, int peer, std::chrono::nanoseconds timeout, ConnectorEvents& events)
    : context_(context), peer_(peer), deadline_(Deadline::after(timeout)), events_(events) {}

Connector::~Connector() { context_.timers.cancel(*this); }

void Connector::try_now() {
  const auto address = published_by(context_.peer(peer_));
  if (!address) return fail(Code::unreachable, "it has no usable shm address");
  if (const Status made = make_pipe(); !made.ok()) return events_.on_refused(made);
  int error = 0;
  Descriptor socket = connect_local(address->name, error);
  if (error != 0) return react(error);
  context_.timers.set(*this, deadline_);
  link_ = std::make_unique<Link>(context_, std::move(socket), context_.guard_to(peer_, deadline_), *this);
  if (!link_->start().ok()) react(ENOMEM);
}

void Connector::react(int error) {
  if (error == EAGAIN || error == EINTR || error == ETOOMANYREFS) {
    link_.reset();
    pause(pause_when_full);
  } else if (error == ECONNREFUSED) {
    fail(Code::peer_lost, "it does not listen any more");
  } else {
    // This process probably lacks descriptors or memory. The lack may be over soon, but shm does not wait for
    // that. The two ranks use the next transport in the order of preference, whose attempts continue until a
    // deadline.
    link_.reset();
    events_.on_refused(Status(Code::resource_exhausted, error_text(error)));
  }
}

Status Connector::make_pipe() {
  if (pipe_ != nullptr) return {};
  proof_ = random_number();
  auto made = Pipe::create(context_.options.ring, proof_);
  if (!made.ok()) return made.status();
  pipe_ = *std::move(made);
  return {};
}

void Connector::on_open(Link&) {
  const auto address = published_by(context_.peer(peer_));
  if (!address) return fail(Code::unreachable, "it has no usable shm address");
  Note note;
  note.kind = NoteKind::connect;
  context_.introduce(note, peer_, *address);
  note.bytes = context_.options.ring;
  note.proof = proof_;
  const std::array<int, 2> descriptors = {pipe_->descriptor(), context_.bell.rope()->descriptor()};
  if (const int error = link_->send(note, descriptors); error != 0) react(error);
}

void Connector::on_note(Link&, const Note& note, std::vector<Descriptor> descriptors) {
  switch (note.kind) {
    case NoteKind::welcome:
      return welcomed(std::move(descriptors));
    case NoteKind::wait:
      link_.reset();
      return pause(meeting::pause_for_theirs);
    case NoteKind::refused: {
      link_.reset();
      const Status why = note.why.failure(peer_);
      return why.code() == Code::peer_lost ? events_.on_connect_failed(why) : events_.on_refused(why);
    }
    default:
      return fail(Code::protocol_error, "it broke the protocol");
  }
}

void Connector::welcomed(std::vector<Descriptor> descriptors) {
  if (descriptors.size() != 1) return fail(Code::protocol_error, "it broke the protocol");
  SharedRope rope = context_.rope_of(peer_, std::move(descriptors.front()));
  if (rope == nullptr) {
    return refuse(Status(Code::protocol_error,
                         context_.describe(peer_) + " handed over a descriptor that is not a bell", peer_));
  }
  if (!pipe_->is_proved()) {
    return refuse(Status(Code::unsupported, context_.describe(peer_) + " has mapped other memory", peer_));
  }
  Note note;
  note.kind = NoteKind::go;
  link_->send_last(note);
  pipe_->set_rope(std::move(rope));
  pipe_->close_descriptor();
  context_.timers.cancel(*this);
  events_.on_connected(std::move(link_), std::move(pipe_));
}

void Connector::on_broken(Link& link, const std::string& why) { fail(link.failure(), why); }

void Connector::on_timer() {
  if (deadline_.expired()) {
    fail(Code::unreachable, "no answer in time");
  } else {
    try_now();
  }
}

void Connector::pause(milliseconds delay) {
  context_.timers.set(*this, earlier(deadline_, Deadline::after(delay)));
}

void Connector::refuse(const Status& why) {
  Note note;
  note.why.set(why);
  link_->send_last(note);
  context_.timers.cancel(*this);
  events_.on_refused(why);
}

void Connector::fail(Code code, const std::string& why) {
  context_.timers.cancel(*this);
  events_.on_connect_failed(
      Status(code, "cannot connect to " + context_.describe(peer_) + ": " + why, peer_));
}

}  // namespace tutti::shm
