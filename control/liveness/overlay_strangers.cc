#include <string_view>
#include <utility>

#include <tutti/log.h>

#include "control/liveness/overlay.h"
#include "transport/meeting/crossing.h"

// This file answers connections that other processes make to this rank.
namespace tutti::liveness {
namespace {

// A connection that is turned away stays open until the other side has received the reason. If this many
// connections are already closing, a further connection is closed at once.
constexpr std::size_t most_closing = 64;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool Overlay::begins_like_hello(std::span<const std::byte> bytes) const {
  return liveness::begins_like_hello(text_of(bytes));
}

std::optional<std::uint32_t> Overlay::claimed_rank(std::span<const std::byte> hello) const {
  const auto decoded = decode_hello(text_of(hello));
  return decoded ? std::optional(decoded->from) : std::nullopt;
}

void Overlay::on_hello(meeting::Guest guest) {
  const Hello hello = *decode_hello(text_of(guest.hello));
  const Verdict verdict = judge(hello);
  auto stream = std::make_unique<Stream>(std::move(guest.connection));
  stream->write(encode(Answer{verdict, generation_}));
  if (verdict != Verdict::welcome) return turn_away(verdict, hello, std::move(stream));
  Contact& contact = contacts_[static_cast<int>(hello.from)];
  contact.stream = std::move(stream);
  open(static_cast<int>(hello.from), contact, now_);
}

void Overlay::turn_away(Verdict verdict, const Hello& hello, std::unique_ptr<Stream> stream) {
  log::debug("control: refused a connection from a process that claims to be rank ", hello.from);
  for (const Lost& loss : losses_) {
    if (verdict == Verdict::fenced && loss.rank == static_cast<int>(hello.from))
      stream->write(encode(loss.frame));
  }
  if (closing_.size() < most_closing) close_after(std::move(stream));
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
  const int from = static_cast<int>(hello.from);
  const auto found = contacts_.find(from);
  // A new connection replaces an open one. The open one has probably ended, and this rank has not noticed
  // yet.
  const meeting::OwnSide own{
      .connecting = found != contacts_.end() &&
                    (found->second.phase == Phase::connecting || found->second.phase == Phase::greeting)};
  const bool wait = meeting::judge_incoming(options_.rank, from, own) == meeting::Incoming::wait;
  return wait ? Verdict::crossed : Verdict::welcome;
}

}  // namespace tutti::liveness
