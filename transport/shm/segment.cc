#include "transport/shm/segment.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "core/error_text.h"
#include "core/new_file.h"

namespace tutti::shm {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status failure(const std::string& what, int error) {
  const bool scarce =
      error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE || error == EFBIG;
  return Status(scarce ? Code::resource_exhausted : Code::unsupported, what + ": " + error_text(error));
}

}  // namespace

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up_to_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

Segment::~Segment() {
  if (memory_.empty()) return;
  release_memory(memory_.data());
  munmap(memory_.data(), memory_.size());
}

Status Segment::create(std::size_t bytes) {
  const std::size_t whole = round_up_to_pages(bytes);
  memfd_ = Descriptor::guarded(memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd_) return failure("memfd_create", errno);
  const FileSizeSignalBlocked no_signal;
  if (ftruncate(memfd_.get(), static_cast<off_t>(whole)) != 0)
    return failure("setting a memfd's size", errno);
  if (fcntl(memfd_.get(), F_ADD_SEALS, seals) != 0) return failure("sealing a memfd", errno);
  return map_all(whole);
}

Status Segment::map(Descriptor memfd, std::size_t bytes) {
  memfd_ = std::move(memfd);
  const std::size_t whole = round_up_to_pages(bytes);
  const int found = fcntl(memfd_.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals) {
    return Status(Code::protocol_error, "the shared segment is not sealed");
  }
  // A hole in huge-page memory may raise SIGBUS in spite of the seals, so only ordinary memory is accepted.
  struct statfs system {};
  if (fstatfs(memfd_.get(), &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return Status(Code::protocol_error, "the shared segment is not ordinary memory");
  }
  struct stat info {};
  if (fstat(memfd_.get(), &info) != 0) return failure("reading the shared segment's size", errno);
  if (info.st_size < 0 || static_cast<std::size_t>(info.st_size) != whole) {
    return Status(Code::protocol_error, "the shared segment has " + std::to_string(info.st_size) +
                                            " bytes instead of " + std::to_string(whole));
  }
  return map_all(whole);
}

Status Segment::map_all(std::size_t bytes) {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0);
  if (start == MAP_FAILED) return failure("mapping " + std::to_string(bytes) + " shared bytes", errno);
  memory_ = {static_cast<std::byte*>(start), bytes};
  guard_memory(start, bytes);
  return {};
}

Status Segment::provide(std::size_t offset, std::size_t bytes) {
  const FileSizeSignalBlocked no_signal;
  while (bytes > 0 &&
         fallocate(memfd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return failure("taking " + std::to_string(bytes) + " bytes of shared memory", errno);
  }
  return {};
}

void Segment::discard(std::span<std::byte> part) {
  // `madvise` fails only if another thread has locked the pages in memory (mlockall). The pages must be zero
  // in any case.
  if (madvise(part.data(), part.size(), MADV_REMOVE) != 0) std::ranges::fill(part, std::byte{0});
}

}  // namespace tutti::shm
