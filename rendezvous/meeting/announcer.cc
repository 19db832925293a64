#include "rendezvous/meeting/announcer.h"

namespace tutti {

Result<SessionText> read_session(Announcer& announcer, Deadline deadline) {
  const Result<Secret> text = announcer.read(deadline);
  if (!text.ok()) return text.status();
  Result<SessionText> session = parse_session(text->reveal());
  if (session.ok()) return session;
  return Status(Code::unreachable, "the session is not complete yet: " + session.status().message());
}

}  // namespace tutti
