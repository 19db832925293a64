#include <chrono>

#include <tutti/log.h>

#include "control/liveness/overlay.h"
#include "core/security/crowd.h"

// This file handles connections that others make to this rank, until they have said who they are.
namespace tutti::liveness {
namespace {

// At most this many strangers are kept. When there are more, one is closed.
constexpr std::size_t most_strangers = 64;
// Few are accepted at a time, so that each has some turns to prove itself before it may be closed.
constexpr int accepts_per_turn = 8;
constexpr std::chrono::milliseconds scarcity_pause{100};

}  // namespace

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

// Makes progress with a stranger. Returns false once it is no longer a stranger, or was closed.
bool Overlay::greet(Stranger& stranger, Clock::time_point now) {
  const bool goes_on = stranger.stream->progress(POLLIN | POLLOUT);
  if (const security::Guard* const guard = stranger.stream->refused_by()) {
    refusals_.add("control", *guard);
    return false;
  }
  const auto close = [](const char* why) {
    log::debug("control: dropped an unidentified connection: ", why);
    return false;
  };
  std::string& received = stranger.stream->received();
  if (!begins_like_hello(received)) return close("it does not speak our protocol");
  if (now >= stranger.due) return close("it did not say who it is in time");
  if (received.size() < hello_bytes) return goes_on || close("it ended");
  const auto hello = decode_hello(received);
  if (!hello || hello->from != stranger.stream->proved().value_or(hello->from))
    return close("it claims another rank than the one that it has proved to be");
  received.erase(0, hello_bytes);
  return welcome(stranger, *hello, now);
}

bool Overlay::welcome(Stranger& stranger, const Hello& hello, Clock::time_point now) {
  const Verdict verdict = judge(hello);
  stranger.stream->write(encode(Answer{verdict, generation_}));
  if (verdict != Verdict::welcome) {
    log::debug("control: refused a connection from a process that claims to be rank ", hello.from);
    for (const Lost& loss : losses_) {
      if (verdict == Verdict::fenced && loss.rank == static_cast<int>(hello.from))
        stranger.stream->write(encode(loss.frame));
    }
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

}  // namespace tutti::liveness
