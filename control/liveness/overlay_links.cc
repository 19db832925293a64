#include <algorithm>
#include <cerrno>
#include <cstring>

#include <tutti/config_values.h>
#include <tutti/log.h>

#include "control/liveness/overlay.h"
#include "core/error_text.h"

// This file connects to neighbours, reads their frames, and gives up a neighbour that stays silent.
namespace tutti::liveness {
namespace {

using std::chrono::milliseconds;

// After a connection ends, this rank waits this long before it declares the neighbour lost. Meanwhile another
// rank can report a more precise cause.
constexpr milliseconds grace{50};
// A rank counts as gone after its host has refused this many connections. A refusal does not mean that the
// rank is still starting, since a rank listens before it publishes its address.
constexpr int refusals_until_gone = 5;
constexpr milliseconds retry_pause{200};
// A rank counts as unreachable after this many rejections by the network.
constexpr int rejections_until_gone = 10;
constexpr milliseconds crossed_pause{1000};
constexpr milliseconds resolve_pause{10};  // between two looks for an answer of the name service
// Once this many bytes to a neighbour are unsent, further notes and heartbeats to it are dropped. This
// happens if the neighbour or its host is frozen and does not read.
constexpr std::size_t most_unsent = 1024 * 1024;
// A connection that this rank closes is kept for at most this long, so that its last bytes can be sent.
constexpr milliseconds closing_limit{500};

}  // namespace

// --- waiting ---

void Overlay::collect(std::vector<pollfd>& waits) {
  waits.clear();
  loop_.collect(waits);
  for (const Closing& each : closing_) waits.push_back({each.stream->descriptor(), each.stream->events(), 0});
  waiting_.assign(waits.size(), -1);
  for (const auto& [rank, contact] : contacts_) {
    if (contact.stream != nullptr) {
      waits.push_back({contact.stream->descriptor(), contact.stream->events(), 0});
      waiting_.push_back(rank);
    }
    if (contact.process && contact.judged == never) {
      waits.push_back({contact.process.get(), POLLIN, 0});
      waiting_.push_back(rank);
    }
  }
}

Clock::time_point Overlay::next() const {
  Clock::time_point first = std::min(stop_at_, loop_.timers.next().when());
  for (const Closing& each : closing_) first = std::min(first, each.due);
  for (const auto& [rank, contact] : contacts_) {
    first = std::min({first, contact.judged, contact.due});
    if (contact.phase == Phase::absent) first = std::min(first, contact.next_try);
    if (contact.phase == Phase::open)
      first = std::min({first, contact.told + interval_, contact.heard + options_.limit});
  }
  return first;
}

void Overlay::run(const std::vector<pollfd>& ready, Clock::time_point now) {
  now_ = now;
  forgive_own_sleep(now);
  loop_.run(ready, now);
  for (std::size_t i = 0; i < ready.size() && !fenced_; ++i) {
    const auto found = contacts_.find(waiting_[i]);
    if (ready[i].revents == 0 || waiting_[i] < 0 || found == contacts_.end()) continue;
    Contact& contact = found->second;
    if (contact.process && contact.process.get() == ready[i].fd) {
      process_ended(contact, now);
    } else if (contact.stream != nullptr && contact.stream->descriptor() == ready[i].fd) {
      advance(waiting_[i], contact, ready[i].revents, now);
    }
  }
  check_times(now);
  planned_ = next();
}

// If ranks have begun to leave, a new neighbour that was never linked has probably left as well. Its goodbye
// is on its way through its older neighbours. If the new neighbour has failed instead, its older neighbours
// notice the failure.
void Overlay::process_ended(Contact& contact, Clock::time_point now) {
  const bool was_linked = contact.heard != never;
  if (any_left_ && !was_linked) {
    contact.process.reset();
  } else {
    suspect(contact, "its process has ended without a goodbye", now);
  }
}

// Restarts the neighbours' time limits if this process itself was stopped. In that case their silence means
// nothing, since their frames have not been read yet.
void Overlay::forgive_own_sleep(Clock::time_point now) {
  if (planned_ == never || now < planned_ + options_.limit / 2) return;
  const auto slept = now - planned_;
  log::info("this process did not run for ", format_duration(std::chrono::round<milliseconds>(slept)));
  for (auto& [rank, contact] : contacts_) {
    if (contact.heard != never) contact.heard = now;
    if (contact.due != never) contact.due += slept;
    if (contact.judged != never) contact.judged = now + grace;
  }
}

void Overlay::check_times(Clock::time_point now) {
  std::erase_if(closing_, [&](Closing& each) {
    const bool goes_on = each.stream->progress(POLLIN | POLLOUT);
    each.stream->received().clear();  // these bytes are not needed any more
    return now >= each.due || !goes_on;
  });
  std::vector<int> ranks;
  for (const auto& [rank, contact] : contacts_) ranks.push_back(rank);
  for (const int rank : ranks) {
    const auto found = contacts_.find(rank);
    if (found == contacts_.end()) continue;
    Contact& contact = found->second;
    const auto lose = [&](const std::string& why) {
      give_up(rank, Status(Code::peer_lost, describe(rank) + ": " + why, rank));
    };
    const std::string limit = format_duration(options_.limit);
    if (now >= contact.judged) {
      const bool never_reached = !contact.failed.empty();
      lose(contact.evidence + (never_reached ? "; before that, " + unreached(rank, contact) : ""));
    } else if (contact.phase == Phase::open && now - contact.heard >= options_.limit) {
      lose("no sign of life for " + limit);
    } else if (contact.phase != Phase::open && now >= contact.due) {
      if (contact.refusal.ok()) {
        lose(unreached(rank, contact));
      } else {
        give_up(rank, contact.refusal);
      }
    } else if (contact.phase == Phase::open && now - contact.told >= interval_) {
      write(contact, frame(FrameKind::heartbeat));
    } else if (contact.phase == Phase::absent && now >= contact.next_try) {
      try_connect(rank, contact, now);
    }
  }
}

// --- connecting ---

void Overlay::try_connect(int rank, Contact& contact, Clock::time_point now) {
  contact.next_try = now + retry_pause;
  if (!contact.address) locate(rank, contact);
  if (contact.resolution) contact.next_try = now + resolve_pause;
  if (!contact.address) return;
  const security::Parties parties{security::Service::control, static_cast<std::uint32_t>(options_.rank),
                                  static_cast<std::uint32_t>(rank)};
  contact.stream = options_.connect(
      *contact.address,
      security::Guard::connecting(options_.credentials, parties, Deadline::after(options_.hello_limit)));
  if (contact.stream != nullptr) {
    contact.phase = Phase::connecting;
    return;
  }
  const int error = errno;
  contact.failed = error_text(error);
  contact.lacks_descriptor = error == EMFILE || error == ENFILE;
}

// The name is resolved on another thread, since heartbeats must not wait for a slow name service.
void Overlay::locate(int rank, Contact& contact) {
  const auto& published = addresses_[static_cast<std::size_t>(rank)];
  if (!published) return;
  if (!contact.resolution) contact.resolution.emplace(published->host, published->port);
  const auto answer = contact.resolution->answer();
  if (!answer) return;
  if (answer->ok()) contact.address = (**answer).front();
  contact.resolution.reset();
}

void Overlay::advance(int rank, Contact& contact, short ready, Clock::time_point now) {
  const bool goes_on = contact.stream->progress(ready);
  if (contact.phase == Phase::connecting && goes_on && contact.stream->connected()) {
    Hello hello;
    hello.from = static_cast<std::uint32_t>(options_.rank);
    hello.to = static_cast<std::uint32_t>(rank);
    hello.generation = generation_;
    hello.job = job_;
    hello.from_nonce = options_.nonce;
    hello.to_nonce = addresses_[static_cast<std::size_t>(rank)]->nonce;
    contact.stream->write(encode(hello));
    contact.stream->flush();
    contact.phase = Phase::greeting;
  }
  if (contact.phase == Phase::greeting && contact.stream->received().size() >= answer_bytes)
    return read_answer(rank, contact, goes_on, now);
  if (contact.phase == Phase::open) {
    const Stream* const read = contact.stream.get();
    read_frames(rank, contact, now);
    // Handling the frames may have changed or removed any contact.
    const auto found = contacts_.find(rank);
    if (found == contacts_.end() || found->second.stream.get() != read || goes_on) return;
    const std::string why = read->why();
    contact.stream.reset();
    contact.phase = Phase::absent;
    suspect(contact, why, now);
  } else if (!goes_on) {
    attempt_failed(rank, contact, now);
  }
}

void Overlay::attempt_failed(int rank, Contact& contact, Clock::time_point now) {
  const bool refused = contact.stream->refused(), rejected = contact.stream->rejected();
  const security::Guard* const guard = contact.stream->refused_by();
  if (guard != nullptr && guard->status().code() == Code::unauthenticated)
    contact.refusal = Status(Code::unauthenticated, describe(rank) + ": " + guard->status().message(), rank);
  contact.failed = contact.stream->why();
  contact.lacks_descriptor = false;
  contact.stream.reset();
  contact.phase = Phase::absent;
  contact.next_try = now + retry_pause;
  const auto unreachable = [&](const std::string& why) {
    give_up(rank, Status(Code::peer_lost, describe(rank) + ": " + why + unreached(rank, contact), rank));
  };
  if (rejected && !refused && ++contact.rejections == rejections_until_gone) return unreachable("");
  if (!refused) return;
  contact.next_try = now + contact.backoff.next();
  if (++contact.refusals < refusals_until_gone) return;
  // A firewall may refuse only one of the two directions. So the other rank also gets a turn to connect
  // before it is given up.
  if (now < both_tried_at_ && losses_.empty() && !any_left_) return;
  // If ranks have begun to leave, `rank` has probably left as well, and its goodbye is on its way through
  // other ranks.
  if (any_left_) return on_left(rank, -1);
  unreachable("it does not listen any more: ");
}

void Overlay::read_answer(int rank, Contact& contact, bool goes_on, Clock::time_point now) {
  const auto answer = decode_answer(contact.stream->received());
  std::string why = "refused by " + describe(rank);
  const bool fenced = answer && answer->verdict == Verdict::fenced;
  if (fenced && !read_reason(contact, goes_on, why)) return;
  contact.stream->received().erase(0, answer_bytes);
  if (answer && answer->verdict == Verdict::welcome) {
    open(rank, contact, now);
    return advance(rank, contact, 0, now);
  }
  contact.stream.reset();
  contact.phase = Phase::absent;
  contact.next_try = now + crossed_pause;
  if (!answer || answer->verdict == Verdict::stranger) {
    give_up(rank, Status(Code::peer_lost, describe(rank) + ": another process answers at its address", rank));
  } else if (answer->verdict == Verdict::leaving) {
    on_left(rank, -1);
  } else if (fenced) {
    fence(why);
  }
}

// Reads the frame after the verdict `fenced`, which says why this rank was given up. Returns false if that
// frame may still arrive.
bool Overlay::read_reason(Contact& contact, bool goes_on, std::string& why) const {
  std::string_view rest = contact.stream->received();
  rest.remove_prefix(answer_bytes);
  Frame loss;
  const Parsed parsed = take_frame(rest, loss);
  if (parsed == Parsed::incomplete) return !goes_on;
  if (parsed != Parsed::wrong && loss.kind == FrameKind::lost) why = loss.body;
  return true;
}

// --- linked ---

void Overlay::open(int rank, Contact& contact, Clock::time_point now) {
  contact.phase = Phase::open;
  contact.heard = contact.told = now;
  contact.due = contact.next_try = contact.judged = never;
  contact.refusals = contact.rejections = 0;
  contact.backoff = between_refusals;
  contact.failed.clear();
  for (const Lost& loss : losses_) write(contact, loss.frame);
  contact.stream->flush();
  log::trace("control: linked with rank ", rank);
}

void Overlay::read_frames(int rank, Contact& contact, Clock::time_point now) {
  std::string received = std::move(contact.stream->received());
  contact.stream->received().clear();
  if (!received.empty()) contact.heard = now;
  std::string_view bytes = received;
  Frame next;
  while (!bytes.empty()) {
    const Parsed parsed = take_frame(bytes, next);
    if (parsed == Parsed::incomplete) break;
    if (parsed == Parsed::wrong) {
      return give_up(rank, Status(Code::protocol_error,
                                  describe(rank) + " broke the protocol of control connections", rank));
    }
    take(rank, next);
    const auto found = contacts_.find(rank);
    if (found == contacts_.end() || found->second.stream == nullptr) return;
  }
  contact.stream->received().insert(0, bytes);
}

void Overlay::write(Contact& contact, const Frame& frame) {
  contact.told = Clock::now();
  const bool vital = frame.kind == FrameKind::lost || frame.kind == FrameKind::left;
  if (contact.stream->unsent() > most_unsent && !vital) return;
  contact.stream->write(encode(frame));
  contact.stream->flush();
}

void Overlay::suspect(Contact& contact, const std::string& evidence, Clock::time_point now) {
  contact.next_try = contact.due = never;
  if (contact.judged != never) return;
  contact.judged = now + grace;
  contact.evidence = evidence;
}

// Sends the written bytes, and keeps the stream until the other side closes it or `closing_limit` is over.
// Meanwhile this side reads all bytes that arrive. If it closed the stream while bytes were unread, the
// kernel would reset the connection, and the other side could lose the last bytes.
void Overlay::close_after(std::unique_ptr<Stream> stream) {
  stream->finish();
  stream->flush();
  closing_.push_back({std::move(stream), Clock::now() + closing_limit});
}

}  // namespace tutti::liveness
