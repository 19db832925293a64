#include "rendezvous/meeting/pmix_announcer.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace tutti {
namespace {

// A rank waits this long for the fence before it asks for the text without the fence.
constexpr std::chrono::seconds fence_patience{2};
// A request for the text may take this long. If it takes longer, the next `read` continues to wait for the
// answer.
constexpr std::chrono::seconds answer_patience{2};
constexpr std::chrono::milliseconds parting_patience{500};

std::string key_of(std::uint64_t session) { return "tutti-session-" + std::to_string(session); }

}  // namespace

PmixAnnouncer::PmixAnnouncer(PmixClient& client, bool fence_only, std::function<bool()> interrupted)
    : client_(client), fence_only_(fence_only), interrupted_(std::move(interrupted)) {}

PmixAnnouncer::~PmixAnnouncer() {
  if (has_published_) go_on_with_fence(Deadline::after(parting_patience));
}

Status PmixAnnouncer::begin(Deadline deadline) {
  return turn_ ? Status() : client_.begin(turn_, interrupted_, deadline);
}

void PmixAnnouncer::go_on_with_fence(Deadline limit) {
  // The result is ignored, since it does not matter whether the fence is passed by then.
  static_cast<void>(client_.pass_fences(client_.sessions().count, limit).ok());
}

Status PmixAnnouncer::publish(const Secret& text, Deadline deadline) {
  if (Status status = begin(deadline); !status.ok()) return status;
  const std::uint64_t session = ++client_.sessions().count;
  if (Status status = client_.put(key_of(session), text, deadline); !status.ok()) return status;
  if (fence_only_) return client_.pass_fences(session, deadline);
  has_published_ = true;
  go_on_with_fence(Deadline::after({}));
  return {};
}

void PmixAnnouncer::restore_if_missing() {
  if (has_published_) go_on_with_fence(Deadline::after({}));
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
  const Deadline patience = earlier(deadline, Deadline::after(fence_patience));
  const Status passed = client_.pass_fences(session, fence_only_ ? deadline : patience);
  if (fence_only_ && !passed.ok()) return passed;
  Result<Secret> text = client_.get(key_of(session), earlier(deadline, Deadline::after(answer_patience)));
  if (text.ok()) known = {session, *text};
  return text;
}

}  // namespace tutti
