#include "tests/verbs/tapped_library.h"

#include <utility>

namespace tutti::test {

TappedLibrary::TappedLibrary(Tap tap) : tap_(std::move(tap)), functions_(library_.functions()) {
  current = this;
  functions_.open_device = [](ibv_device* device) {
    ibv_context* const context = current->untapped().open_device(device);
    if (context == nullptr) return context;
    const std::lock_guard lock(current->mutex_);
    current->posts_[context] = context->ops.post_send;
    context->ops.post_send = [](ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** failed) {
      current->tap_(*pair, *request);
      return current->post(pair, request, failed);
    };
    return context;
  };
}

TappedLibrary::~TappedLibrary() { current = nullptr; }

int TappedLibrary::post(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** failed) {
  decltype(ibv_context_ops::post_send) real = nullptr;
  {
    const std::lock_guard lock(mutex_);
    real = posts_.at(pair->context);
  }
  return real(pair, request, failed);
}

}  // namespace tutti::test
