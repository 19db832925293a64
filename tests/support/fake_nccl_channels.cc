#include "tests/support/fake_nccl_channels.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tutti::test {

namespace {

using Header = std::array<std::uint64_t, 2>;  // the tag and the length of a message, in front of it

}  // namespace

// The shared memory is zero at first, which is the right initial value of all members.
struct FakeChannels::Ring {
  static constexpr std::uint64_t capacity = 16 * 1024;
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  std::byte bytes[capacity];
};

struct FakeChannels::Shared {
  std::atomic<int> ranks;
  std::atomic<int> leavers;
  Ring first_ring;
};

FakeChannels::FakeChannels(const std::string& name, int rank, int size)
    : name_(name), rank_(rank), size_(size) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(total_bytes())) == 0) {
    void* const mapped = mmap(nullptr, total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) memory_ = static_cast<Shared*>(mapped);
  }
  close(file);
  if (memory_ != nullptr) ++memory_->ranks;
}

FakeChannels::~FakeChannels() {
  if (memory_ != nullptr) munmap(memory_, total_bytes());
  shm_unlink(name_.c_str());
}

std::size_t FakeChannels::total_bytes() const {
  return sizeof(Shared) + static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_) * sizeof(Ring);
}

bool FakeChannels::complete() {
  if (memory_->ranks < size_) return false;
  shm_unlink(name_.c_str());
  return true;
}

void FakeChannels::leave() { ++memory_->leavers; }

bool FakeChannels::all_leave() const { return memory_->leavers == size_; }

FakeChannels::Ring& FakeChannels::ring(int from, int to) { return (&memory_->first_ring)[from * size_ + to]; }

void FakeChannels::move(std::vector<FakeTransfer>& transfers, const std::atomic<bool>& gives_up) {
  const auto is_over = [](const FakeTransfer& each) { return each.done == sizeof(Header) + each.bytes; };
  while (!gives_up) {
    std::set<std::pair<int, bool>>
        busy;  // peers and directions with an unfinished message; later messages must wait for it
    bool any = false;
    for (FakeTransfer& transfer : transfers) {
      if (is_over(transfer) || busy.contains({transfer.peer, transfer.sends})) continue;
      any |= advance(transfer);
      if (!is_over(transfer)) busy.insert({transfer.peer, transfer.sends});
    }
    if (busy.empty()) return;
    if (!any) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// Each message in a ring begins at a multiple of the size of a header. So headers never wrap
// around.
bool FakeChannels::advance(FakeTransfer& transfer) {
  Header header = {transfer.tag, transfer.bytes};
  Ring& ring = transfer.sends ? this->ring(rank_, transfer.peer) : this->ring(transfer.peer, rank_);
  const std::uint64_t used = ring.written - ring.read;
  const std::uint64_t room = transfer.sends ? Ring::capacity - std::min(used, Ring::capacity) : used;
  std::atomic<std::uint64_t>& position = transfer.sends ? ring.written : ring.read;
  const std::uint64_t start = position % Ring::capacity;
  std::byte* const at = ring.bytes + start;
  if (transfer.done < sizeof header) {
    if (room < sizeof header) return false;
    if (!transfer.sends && std::memcmp(at, header.data(), sizeof header) != 0) return false;
    if (transfer.sends) std::memcpy(at, header.data(), sizeof header);
    transfer.done = sizeof header;
    position += sizeof header;
    return true;
  }
  const std::uint64_t left = sizeof header + transfer.bytes - transfer.done;
  const std::uint64_t part = std::min({left, room, Ring::capacity - start});
  std::byte* const memory = transfer.memory + (transfer.done - sizeof header);
  if (transfer.sends) std::memcpy(at, memory, part);
  if (!transfer.sends) std::memcpy(memory, at, part);
  transfer.done += part;
  const std::uint64_t next = position + part;
  position = part == left ? (next + sizeof header - 1) / sizeof header * sizeof header : next;
  return part != 0;
}

}  // namespace tutti::test
