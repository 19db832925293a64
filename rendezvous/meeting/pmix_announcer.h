#pragma once

#include <functional>
#include <mutex>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/announcer.h"
#include "rendezvous/meeting/pmix_client.h"

namespace tutti {

// A `PmixAnnouncer` announces the session through the launcher, by PMIx. Rank 0 puts the text under a key,
// all ranks pass a fence, and the others get the text. The sessions of a process are numbered, and each
// session has its own key and its own fence. So all ranks must meet in the same order if they meet more than
// once.
//
// Rank 0 does not wait for the fence. Any other rank asks for the text without the fence after it has waited
// for a while. So the ranks meet, and find out which ranks are missing, even if a rank never reaches the
// fence. If ranks can get the text only by the fence, all ranks wait for the fence, and an error cannot name
// the missing ranks. The launcher keeps the texts until the job ends.
class PmixAnnouncer final : public Announcer {
 public:
  // The client must outlive the announcer. `fence_only` says whether a rank can get the text only
  // by the fence.
  PmixAnnouncer(PmixClient& client, bool fence_only, std::function<bool()> interrupted);
  // On rank 0, waits briefly for the fence, so that the program itself can then pass fences (in MPI).
  ~PmixAnnouncer() override;
  PmixAnnouncer(const PmixAnnouncer&) = delete;
  PmixAnnouncer& operator=(const PmixAnnouncer&) = delete;

  Status publish(const Secret& text, Deadline deadline) override;
  // Alternates between two sessions: the session that this process has read last, whose ranks may
  // still be meeting, and the session after it. Without `fence_only`, a call takes a few seconds at most.
  Result<Secret> read(Deadline deadline) override;
  // Begins the fence if `publish` could not, because the fence of an earlier session was still
  // under way.
  void restore_if_missing() override;

 private:
  Status begin(Deadline deadline);
  void go_on_with_fence(Deadline limit);

  PmixClient& client_;
  const bool fence_only_;
  std::function<bool()> interrupted_;
  std::unique_lock<std::mutex> turn_;
  bool has_published_ = false;
  bool looks_ahead_ = false;  // the next `read` looks for a session after the last one
};

}  // namespace tutti
