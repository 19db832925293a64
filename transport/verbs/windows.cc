#include "transport/verbs/windows.h"

#include <algorithm>
#include <cerrno>

#include <tutti/log.h>

#include "core/error_text.h"

namespace tutti::verbs {

Windows::Window* Windows::free() {
  const auto found = std::ranges::find(windows_, false, [](const auto& window) { return window->in_use; });
  if (found != windows_.end()) return found->get();
  if (windows_.size() == most) return nullptr;
  ibv_mw* const raw = ibv_alloc_mw(domain_->raw(), IBV_MW_TYPE_2);
  if (raw == nullptr) {
    log::info("verbs: the device gives no further memory window: ", error_text(errno));
    return nullptr;
  }
  windows_.push_back(std::make_unique<Window>(Window{.raw = raw}));
  return windows_.back().get();
}

Windows::Window* Windows::of(std::uint32_t permit) {
  const auto found = std::ranges::find_if(
      windows_, [&](const auto& window) { return window->in_use && window->permit == permit; });
  return found == windows_.end() ? nullptr : found->get();
}

void Windows::clear() {
  for (const auto& window : windows_) {
    if (const int error = ibv_dealloc_mw(window->raw))
      log::warn("verbs: a memory window cannot be destroyed: ", error_text(error));
  }
  windows_.clear();
  waiting.clear();
}

}  // namespace tutti::verbs
