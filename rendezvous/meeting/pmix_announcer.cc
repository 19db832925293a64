#include "rendezvous/meeting/pmix_announcer.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace tutti {
namespace {

// A rank waits this long for the fence before it asks for the text without it.
constexpr std::chrono::seconds fence_patience{2};
// A request for the text may take this long. If it takes longer, the next `read` goes on with it.
constexpr std::chrono::seconds answer_patience{2};
constexpr std::chrono::milliseconds parting_patience{500};

std::string key_of(std::uint64_t session) { return "tutti-session-" + std::to_string(session); }

}  // namespace

PmixAnnouncer::PmixAnnouncer(PmixClient& client, std::function<bool()> interrupted)
    : client_(client), interrupted_(std::move(interrupted)) {}

PmixAnnouncer::~PmixAnnouncer() {
  if (has_published_) client_.pass_fences(client_.sessions().count, Deadline::after(parting_patience));
}

Status PmixAnnouncer::begin(Deadline deadline) {
  return turn_ ? Status() : client_.begin(turn_, interrupted_, deadline);
}

Status PmixAnnouncer::publish(const Secret& text, Deadline deadline) {
  if (Status status = begin(deadline); !status.ok()) return status;
  if (Status status = client_.put(key_of(++client_.sessions().count), text, deadline); !status.ok())
    return status;
  has_published_ = true;
  restore_if_missing();
  return {};
}

void PmixAnnouncer::restore_if_missing() {
  if (has_published_) client_.pass_fences(client_.sessions().count, Deadline::after({}));
}

Result<Secret> PmixAnnouncer::read(Deadline deadline) {
  if (Status status = begin(deadline); !status.ok()) return status;
  PmixClient::Sessions& known = client_.sessions();
  if (known.count > 0 && !looks_ahead_) {
    looks_ahead_ = true;
    return known.last;
  }
  looks_ahead_ = false;
  const std::uint64_t session = known.count + 1;
  client_.pass_fences(session, earlier(deadline, Deadline::after(fence_patience)));
  Result<Secret> text = client_.get(key_of(session), earlier(deadline, Deadline::after(answer_patience)));
  if (text.ok()) known = {session, *text};
  return text;
}

}  // namespace tutti
