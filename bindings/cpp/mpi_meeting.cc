#include "bindings/cpp/mpi_meeting.h"

#include <chrono>
#include <utility>

#include "bindings/cpp/mpi_process.h"

namespace tutti {
namespace {

// After the meeting, rank 0 waits at most this long for the end of its part in the broadcast.
constexpr std::chrono::seconds parting_patience{10};

}  // namespace

// An `MpiAnnouncer` serves one attempt to meet. The state of the broadcast is in the meeting, since a rank
// may need several attempts, but MPI's broadcast can be called only once.
class MpiMeeting::MpiAnnouncer final : public Announcer {
 public:
  explicit MpiAnnouncer(MpiMeeting& meeting) : meeting_(meeting) {}
  ~MpiAnnouncer() override;
  MpiAnnouncer(const MpiAnnouncer&) = delete;
  MpiAnnouncer& operator=(const MpiAnnouncer&) = delete;

  // Does not wait for the other ranks, so that rank 0 can find out which of them are missing.
  Status publish(const Secret& text, Deadline deadline) override;
  Result<Secret> read(Deadline deadline) override;
  // Lets the broadcast progress.
  void restore_if_missing() override;

 private:
  MpiMeeting& meeting_;
};

MpiMeeting::MpiAnnouncer::~MpiAnnouncer() {
  // A rank that does not complete its broadcast must not begin another one.
  if (meeting_.process_.rank() != 0 || !meeting_.has_started_) return;
  static_cast<void>(meeting_.process_.finish_broadcast(Deadline::after(parting_patience)).ok());
}

Status MpiMeeting::MpiAnnouncer::publish(const Secret& text, Deadline) {
  if (meeting_.has_started_)
    return Status(Code::invalid_argument, "rank 0 cannot announce a second session in one meeting (MPI)");
  meeting_.has_started_ = true;
  return meeting_.process_.start_broadcast(text);
}

void MpiMeeting::MpiAnnouncer::restore_if_missing() { static_cast<void>(meeting_.process_.progress().ok()); }

Result<Secret> MpiMeeting::MpiAnnouncer::read(Deadline deadline) {
  if (!meeting_.text_.empty()) return meeting_.text_;
  if (!meeting_.has_started_) {
    meeting_.has_started_ = true;
    if (Status status = meeting_.process_.start_broadcast({}); !status.ok()) return status;
  }
  Result<Secret> text = meeting_.process_.finish_broadcast(deadline);
  if (text.ok()) meeting_.text_ = *text;
  return text;
}

Result<std::unique_ptr<MpiMeeting>> MpiMeeting::begin(const std::string& library,
                                                      const std::function<bool()>& interrupted,
                                                      Deadline deadline) {
  MpiProcess& process = MpiProcess::instance();
  std::unique_ptr<MpiMeeting> meeting(new MpiMeeting(process));
  const Status begun = process.begin(meeting->turn_, library, interrupted, deadline);
  if (!begun.ok()) return begun;
  return meeting;
}

int MpiMeeting::rank() const { return process_.rank(); }
int MpiMeeting::size() const { return process_.size(); }
std::unique_ptr<Announcer> MpiMeeting::announcer() { return std::make_unique<MpiAnnouncer>(*this); }

}  // namespace tutti
