#pragma once

#include <functional>
#include <mutex>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/announcer.h"
#include "rendezvous/meeting/pmix_client.h"

namespace tutti {

// A `PmixAnnouncer` announces the session through the launcher, by PMIx: rank 0 puts the text under a key,
// all ranks pass a fence, and the others get the text. The sessions of a process are numbered, and each has a
// key and a fence of its own. So all ranks must meet in the same order if they meet more than once.
//
// Rank 0 does not wait for the fence. Another rank that has waited a while asks for the text without it. So
// the ranks meet, and find out who is missing, even if one of them never comes to the fence. Where the text
// can be got only by the fence, all ranks wait for it, and an error cannot name who is missing. The launcher
// keeps the texts until the job ends.
class PmixAnnouncer final : public Announcer {
 public:
  // The client must outlive the announcer. `fence_only` says whether the text can be got only by the fence.
  PmixAnnouncer(PmixClient& client, bool fence_only, std::function<bool()> interrupted);
  // On rank 0, waits briefly for the fence, so that the program can pass fences of its own (in MPI).
  ~PmixAnnouncer() override;
  PmixAnnouncer(const PmixAnnouncer&) = delete;
  PmixAnnouncer& operator=(const PmixAnnouncer&) = delete;

  Status publish(const Secret& text, Deadline deadline) override;
  // Returns, in turn, the last session that this process has read, whose ranks may still be meeting, and the
  // one after it. Without `fence_only`, takes a few seconds at most.
  Result<Secret> read(Deadline deadline) override;
  // Passes the fence, if the fence of an earlier session was in the way.
  void restore_if_missing() override;

 private:
  Status begin(Deadline deadline);
  void go_on_with_fence(Deadline limit);

  PmixClient& client_;
  const bool fence_only_;
  std::function<bool()> interrupted_;
  std::unique_lock<std::mutex> turn_;
  bool has_published_ = false;
  bool looks_ahead_ = false;  // the next `read` looks for a later session than the last one
};

}  // namespace tutti
