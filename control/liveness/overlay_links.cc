#include <algorithm>
#include <cerrno>
#include <cstring>

#include <tutti/config_values.h>
#include <tutti/log.h>

#include "control/liveness/overlay.h"
#include "core/error_text.h"
#include "core/security/crowd.h"

// Connections: making them, reading them, judging their silence.
namespace tutti::liveness {
namespace {

using std::chrono::milliseconds;

// Between a connection's end and the verdict, for whoever knows a better cause.
constexpr milliseconds grace{50};
// Who has not said hello by then is closed; so is one of too many.
constexpr milliseconds hello_limit{5000};
constexpr std::size_t most_strangers = 64;
// Few of those, so that nobody has to go before it had some turns to prove itself, however many come.
constexpr int accepts_per_turn = 8;
constexpr milliseconds scarcity_pause{100};
// So many refusals, and a rank counts as gone: it listened before anybody knew its address.
constexpr int refusals_until_gone = 5;
constexpr milliseconds retry_pause{200};
// So often the network may say that it does not lead there.
constexpr int rejections_until_gone = 10;
constexpr milliseconds crossed_pause{1000};
constexpr milliseconds resolve_pause{10};  // between looks whether the name service has answered
// A neighbour that does not read is sent no more than this: it is frozen, or its host is.
constexpr std::size_t most_unsent = 1024 * 1024;
// How long a connection that is over may take to be written to its end.
constexpr milliseconds closing_limit{500};

}  // namespace

// --- what to wait for ---

void Overlay::collect(std::vector<pollfd>& waits) {
  waits.clear();
  waiting_.clear();
  const bool accepting = listener_ && stop_at_ == never && accept_at_ == Clock::time_point{};
  waits.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
  waiting_.push_back(-1);
  for (const Stranger& stranger : strangers_) {
    waits.push_back({stranger.stream->descriptor(), stranger.stream->events(), 0});
    waiting_.push_back(-1);
  }
  for (const Stranger& stranger : closing_) {
    waits.push_back({stranger.stream->descriptor(), stranger.stream->events(), 0});
    waiting_.push_back(-1);
  }
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
  Clock::time_point first = stop_at_;
  if (accept_at_ != Clock::time_point{}) first = std::min(first, accept_at_);
  for (const Stranger& stranger : strangers_) first = std::min(first, stranger.due);
  for (const Stranger& stranger : closing_) first = std::min(first, stranger.due);
  for (const auto& [rank, contact] : contacts_) {
    first = std::min({first, contact.judged, contact.due});
    if (contact.phase == Phase::absent) first = std::min(first, contact.next_try);
    if (contact.phase == Phase::open)
      first = std::min({first, contact.told + interval_, contact.heard + options_.limit});
  }
  return first;
}

void Overlay::run(const std::vector<pollfd>& ready, Clock::time_point now) {
  forgive_own_sleep(now);
  if (ready[0].revents != 0) accept(now);
  greet_strangers(now);
  for (std::size_t i = 1; i < ready.size() && !fenced_; ++i) {
    const auto found = contacts_.find(waiting_[i]);
    if (ready[i].revents == 0 || waiting_[i] < 0 || found == contacts_.end()) continue;
    Contact& contact = found->second;
    if (contact.process && contact.process.get() == ready[i].fd) {
      suspect(contact, "its process has ended without a goodbye", now);
    } else if (contact.stream != nullptr && contact.stream->descriptor() == ready[i].fd) {
      advance(waiting_[i], contact, ready[i].revents, now);
    }
  }
  check_times(now);
  planned_ = next();
}

// If we ourselves were stopped, the others' silence means nothing: what they said is still to be read, and
// then they have their time anew.
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
  if (now >= accept_at_) accept_at_ = {};
  std::erase_if(closing_, [&](Stranger& stranger) {
    const bool goes_on = stranger.stream->progress(POLLIN | POLLOUT);
    stranger.stream->received().clear();  // nobody reads it any more
    return now >= stranger.due || !goes_on;
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
      lose(contact.evidence);
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

// --- who comes to us ---

void Overlay::accept(Clock::time_point now) {
  for (int i = 0; i < accepts_per_turn; ++i) {
    bool scarce = false;
    auto guard =
        security::Guard::accepting(options_.credentials, security::Service::control,
                                   static_cast<std::uint32_t>(options_.rank), Deadline::after(hello_limit));
    std::unique_ptr<Stream> stream = accept_from(listener_, std::move(guard), scarce);
    if (scarce) accept_at_ = now + scarcity_pause;
    if (stream == nullptr) return;
    if (strangers_.size() == most_strangers) {
      const auto crowd_of = [](const Stranger& stranger) {
        return security::Crowd{stranger.origin, stranger.stream->has_begun()};
      };
      strangers_.erase(security::first_to_go(strangers_, crowd_of));
    }
    const std::uint64_t origin = security::origin_of(stream->descriptor());
    strangers_.push_back({std::move(stream), now + hello_limit, origin});
  }
}

void Overlay::greet_strangers(Clock::time_point now) {
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto stranger = next++;
    if (!greet(*stranger, now)) strangers_.erase(stranger);
  }
}

// False once it is a stranger no more, or closed.
bool Overlay::greet(Stranger& stranger, Clock::time_point now) {
  const bool goes_on = stranger.stream->progress(POLLIN | POLLOUT);
  if (const security::Guard* const guard = stranger.stream->refused_by()) {
    refusals_.add("control", *guard);
    return false;
  }
  const auto close = [](const char* why) {
    log::debug("control: a connection was closed before it was one of ours: ", why);
    return false;
  };
  std::string& received = stranger.stream->received();
  if (!begins_like_hello(received)) return close("it does not speak our protocol");
  if (now >= stranger.due) return close("it did not say who it is in time");
  if (received.size() < hello_bytes) return goes_on || close("it ended");
  const auto hello = decode_hello(received);
  if (!hello || hello->from != stranger.stream->proved().value_or(hello->from))
    return close("it says that it is another than it has proved to be");
  received.erase(0, hello_bytes);
  return welcome(stranger, *hello, now);
}

bool Overlay::welcome(Stranger& stranger, const Hello& hello, Clock::time_point now) {
  const Verdict verdict = judge(hello);
  stranger.stream->write(encode(Answer{verdict, generation_}));
  if (verdict != Verdict::welcome) {
    log::debug("control: turned away what says it is rank ", hello.from);
    if (closing_.size() < most_strangers) close_after(std::move(stranger.stream));
    return false;
  }
  Contact& contact = contacts_[static_cast<int>(hello.from)];
  contact.stream = std::move(stranger.stream);
  open(static_cast<int>(hello.from), contact, now);
  return false;
}

Verdict Overlay::judge(const Hello& hello) const {
  const auto self = static_cast<std::uint32_t>(options_.rank);
  if (hello.version != protocol_version || hello.job != job_ || hello.to != self || hello.from == self ||
      hello.to_nonce != options_.nonce || !is_rank(hello.from)) {
    return Verdict::stranger;
  }
  const auto& address = addresses_[hello.from];
  if (!address || address->nonce != hello.from_nonce) return Verdict::stranger;
  if (presence_[hello.from] == Presence::lost) return Verdict::fenced;
  if (presence_[hello.from] == Presence::left || stop_at_ != never) return Verdict::leaving;
  const auto found = contacts_.find(static_cast<int>(hello.from));
  const bool trying = found != contacts_.end() &&
                      (found->second.phase == Phase::connecting || found->second.phase == Phase::greeting);
  return trying && self < hello.from ? Verdict::crossed : Verdict::welcome;
}

// --- whom we go to ---

void Overlay::try_connect(int rank, Contact& contact, Clock::time_point now) {
  contact.next_try = now + retry_pause;
  if (!contact.address) locate(rank, contact);
  if (contact.resolution) contact.next_try = now + resolve_pause;
  if (!contact.address) return;
  const security::Parties parties{security::Service::control, static_cast<std::uint32_t>(options_.rank),
                                  static_cast<std::uint32_t>(rank)};
  contact.stream = options_.connect(
      *contact.address,
      security::Guard::connecting(options_.credentials, parties, Deadline::after(hello_limit)));
  if (contact.stream != nullptr) contact.phase = Phase::connecting;
  if (contact.stream == nullptr) contact.failed = error_text(errno);
}

// The name service may take its time: heartbeats must not wait for it.
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
    return read_answer(rank, contact, now);
  if (contact.phase == Phase::open) {
    const Stream* const read = contact.stream.get();
    read_frames(rank, contact, now);
    // What it said may have changed everything.
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
  // Where ranks have begun to leave, this one will have done so as well, and its goodbye went another way.
  if (any_left_) return on_left(rank, -1);
  unreachable("nobody listens for it any more: ");
}

void Overlay::read_answer(int rank, Contact& contact, Clock::time_point now) {
  const auto answer = decode_answer(contact.stream->received());
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
  } else if (answer->verdict == Verdict::fenced) {
    fence("refused by " + describe(rank) + " at generation " + std::to_string(answer->generation));
  }
}

// --- linked ---

void Overlay::open(int rank, Contact& contact, Clock::time_point now) {
  contact.phase = Phase::open;
  contact.heard = contact.told = now;
  contact.due = contact.next_try = contact.judged = never;
  contact.refusals = contact.rejections = 0;
  contact.backoff = between_refusals;
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

std::string Overlay::unreached(int rank, const Contact& contact) const {
  const auto& address = addresses_[static_cast<std::size_t>(rank)];
  const std::string place = address ? " at " + format_endpoint(address->host, address->port) : "";
  return "no control connection with it could be made" + place + ": " +
         (contact.failed.empty() ? "nothing answered" : contact.failed) +
         ". If a firewall is in between: TUTTI_PORT_RANGE says which ports ranks listen on, "
         "TUTTI_SOCKET_IFNAME "
         "and TUTTI_BIND_ADDRESS on which network";
}

void Overlay::suspect(Contact& contact, const std::string& evidence, Clock::time_point now) {
  contact.next_try = contact.due = never;
  if (contact.judged != never) return;
  contact.judged = now + grace;
  contact.evidence = evidence;
}

// Lets what was written leave, and waits for the other side's end: closing with something unread would make
// the kernel drop what the other side has not read yet.
void Overlay::close_after(std::unique_ptr<Stream> stream) {
  stream->finish();
  stream->flush();
  closing_.push_back({std::move(stream), Clock::now() + closing_limit});
}

}  // namespace tutti::liveness
