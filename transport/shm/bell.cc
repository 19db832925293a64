#include <cerrno>

#include <sys/eventfd.h>

#include <tutti/core/error_text.h>
#include <tutti/transport/shm/bell.h>

namespace tutti::shm {

void BellRope::ring() const {
  const std::uint64_t once = 1;
  // Refused only if so many rings wait that the counter is full: it is heard in any case.
  static_cast<void>(::write(eventfd_.get(), &once, sizeof once));
}

Status Bell::create() {
  Descriptor eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd) {
    return Status(Code::resource_exhausted, "eventfd: " + error_text(errno));
  }
  rope_ = std::make_shared<const BellRope>(std::move(eventfd));
  return {};
}

void Bell::on_ready(std::uint32_t) {
  std::uint64_t rings;
  static_cast<void>(::read(rope_->descriptor(), &rings, sizeof rings));
}

}  // namespace tutti::shm
