#pragma once

#include <functional>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/announcer.h"
#include "rendezvous/meeting/pmi_client.h"

namespace tutti {

// A `PmiAnnouncer` announces the session through the launcher, by PMI-1. Rank 0 puts the text under
// several keys, in pieces. All ranks pass a fence, and then the others get the pieces. So all ranks must meet
// in the same order if they meet more than once. The launcher keeps the text until the job ends.
class PmiAnnouncer final : public Announcer {
 public:
  // The client must outlive the announcer.
  PmiAnnouncer(PmiClient& client, std::function<bool()> interrupted);

  Status publish(const Secret& text, Deadline deadline) override;
  // The first call passes the fence. Later calls return the same text.
  Result<Secret> read(Deadline deadline) override;

 private:
  Result<Secret> collect(const std::string& prefix, Deadline deadline);

  PmiClient& client_;
  std::function<bool()> interrupted_;
  Secret text_;  // the text that was read
};

}  // namespace tutti
