#include "collectives/group/segment_sharing.h"

#include <atomic>
#include <utility>

#include <tutti/log.h>

#include "control/notes.h"

namespace tutti {

// A `Sharing` is one attempt to share a segment. A thread waits for its outcome.
struct SegmentSharing::Sharing : ShareRequest {
  Sharing(Driver& shared_driver, Deadline until) : driver(shared_driver) {
    deadline = until;
    done = [](ShareRequest& request, Result<std::unique_ptr<SharedSegment>> segment) {
      auto& self = static_cast<Sharing&>(request);
      self.outcome = std::move(segment);
      self.over.store(1);
      self.driver.notify(self.over);
    };
  }
  Driver& driver;
  std::atomic<std::uint32_t> over{0};
  Result<std::unique_ptr<SharedSegment>> outcome = Status(Code::internal, "not shared yet");
};

SegmentSharing::SegmentSharing(std::uint32_t context, const Members& members, Mesh& mesh, ControlDesk& desk,
                               Failure& failure, ActiveGroups::Member& group, SharedSegmentEvents& events)
    : context_(context),
      members_(members),
      mesh_(mesh),
      driver_(mesh.driver()),
      desk_(desk),
      failure_(failure),
      group_(group),
      events_(events) {}

Result<std::unique_ptr<SharedSegment>> SegmentSharing::share(Sharing& sharing) {
  sharing.key = std::uint64_t{context_} << 32 | asked_for_++;
  {
    const DriverGuard guard(driver_);
    if (const Status failed = failure_.status(); !failed.ok()) return failed;
    requests_.push_back(&sharing);
    group_.stir();
    mesh_.share(sharing);
  }
  // This wait needs no deadline: the transport enforces the deadline of the request, and a failure of the
  // communicator ends the request at once.
  const bool over = driver_.wait(sharing.over, Deadline::never());
  const DriverGuard guard(driver_);
  std::erase(requests_, &sharing);
  if (!over) return driver_.status();
  return std::move(sharing.outcome);
}

void SegmentSharing::cancel(const Status& why) {
  for (ShareRequest* request : requests_) mesh_.cancel_share(*request, why);
}

void SegmentSharing::open(HostMemory& memory, std::vector<int> on_this_host, std::uint64_t first_bytes,
                          std::uint64_t room, Deadline deadline) {
  Sharing sharing(driver_, deadline);
  memory.prepare(sharing, std::move(on_this_host), members_.own_world_rank(), first_bytes, room);
  Result<std::unique_ptr<SharedSegment>> segment = share(sharing);
  if (segment.ok()) {
    const DriverGuard guard(driver_);
    memory.open(std::move(segment).take());
  } else {
    log::info(members_.describe_this_rank(),
              ": the ranks of this host do not share memory: ", segment.status().message());
  }
}

std::shared_ptr<GroupMemory> SegmentSharing::allocate(const std::vector<std::uint64_t>& parts, bool shares,
                                                      Deadline deadline) {
  std::unique_ptr<SharedSegment> segment;
  if (shares) {
    Sharing sharing(driver_, deadline);
    sharing.members = members_.world_ranks();
    sharing.bytes = GroupMemory::segment_bytes(parts);
    sharing.events = &events_;
    auto shared = share(sharing);
    if (shared.ok()) {
      segment = std::move(shared).take();
    } else {
      const Status why = failure_.happened() ? failure_.status() : shared.status();
      // A request fails with one of these codes if the communicator has failed. This rank may have no other
      // sign of that failure.
      if (why.code() == Code::aborted || why.code() == Code::peer_lost || failure_.happened()) {
        throw Error(why);
      }
      log::warn(members_.describe_this_rank(), ": memory is not registered: ", why.message());
    }
  }
  auto memory = std::make_shared<GroupMemory>(std::move(segment), members_.rank(), parts);
  auto registrations = mesh_.add_memory({memory->data(), memory->bytes()});
  if (registrations.ok()) {
    memory->keep(*std::move(registrations));
  } else {
    log::warn(members_.describe_this_rank(),
              ": peers cannot write into this memory: ", registrations.status().message());
  }
  if (memory->shared()) {
    const DriverGuard guard(driver_);  // `add` may drop unused segments
    allocations_.add(memory);
  }
  return memory;
}

void SegmentSharing::tell_unused() {
  const std::string body = NoteWriter().put(context_).take();
  for (const int rank : members_.world_ranks()) desk_.send(rank, topic_unused, body);
}

}  // namespace tutti
