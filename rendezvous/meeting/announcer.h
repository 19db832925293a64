#pragma once

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/session_text.h"

namespace tutti {

// An `Announcer` hands one text, the session, from rank 0 of a launch to the other ranks, for example through
// a file or through the launcher. The text is a secret of the launch. An announcer shows the text to nobody
// else, and trusts no text that somebody else may have written (docs/seams/announcer.md).
//
// One announcer serves one rank in one meeting. Only one thread at a time may call it. The destructor
// withdraws what was published, where that is possible.
class Announcer {
 public:
  virtual ~Announcer() = default;
  // Lets the other ranks read the text, which has at most `max_session_bytes` bytes of printable ASCII and
  // line ends. Rank 0 calls this once, when it already serves its store. Fails with `invalid_argument` if the
  // file or the launcher cannot be used. An announcer that has to wait for the other ranks may also fail with
  // `timeout` or `aborted`.
  virtual Status publish(const Secret& text, Deadline deadline) = 0;
  // Returns the text that rank 0 has published. Fails with `unreachable` if rank 0 has not published a text
  // yet, and with `invalid_argument` if waiting does not help. An announcer that has to wait for other ranks
  // may also fail with `timeout` or `aborted`.
  virtual Result<Secret> read(Deadline deadline) = 0;
  // Publishes the text again if it has vanished. Rank 0 calls this from time to time while it waits.
  virtual void restore_if_missing() {}
};

// Reads and parses the session. Fails as `Announcer::read` does. Also fails with `unreachable` if the text is
// damaged, since rank 0 may still replace it.
Result<SessionText> read_session(Announcer& announcer, Deadline deadline);

}  // namespace tutti
