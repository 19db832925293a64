#include "rendezvous/meeting/meeting_store.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;

// A request whose deadline comes from `closing()` may take at most this long.
constexpr milliseconds longest_request{2000};
// A request whose deadline comes from `closing()` may begin up to this long after the meeting's deadline, or
// after the first call of `closing()` if that is later.
constexpr milliseconds closing_window{300};

Deadline end_after(Deadline deadline) {
  if (deadline.is_never()) return deadline;
  return Deadline::after(deadline.remaining() + closing_window);
}

}  // namespace

Deadline MeetingStore::closing() {
  if (!end_) end_ = end_after(deadline_);
  return earlier(*end_, Deadline::after(longest_request));
}

Status MeetingStore::admit() const {
  if (!end_ || !end_->expired()) return {};
  return Status(Code::timeout, "the time for the ranks to meet is over");
}

}  // namespace tutti::rendezvous
