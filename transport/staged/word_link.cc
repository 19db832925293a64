#include "transport/staged/word_link.h"

#include <utility>

namespace tutti::staged {

namespace {

Status check_stream(const cuda::Device& device, cuda::StreamHandle stream) {
  const Status refused = cuda::refuse_capture(device.api(), stream);
  return refused.ok() ? device.check_stream(stream) : refused;
}

}  // namespace

Result<std::unique_ptr<WordLink>> WordLink::create(const std::shared_ptr<const cuda::Device>& device,
                                                   void* stream) {
  const cuda::Device::Current current(*device);
  const auto handle = static_cast<cuda::StreamHandle>(stream);
  std::unique_ptr<cuda::Event> before;
  if (stream != nullptr) {
    if (const Status refused = check_stream(*device, handle); !refused.ok()) return refused;
    Result<std::unique_ptr<cuda::Event>> made = cuda::Event::create_in(device->api(), handle);
    if (!made.ok()) return made.status();
    before = *std::move(made);
  }
  Result<std::unique_ptr<cuda::Word>> word = cuda::Word::take(*device);
  if (!word.ok()) return word.status();
  std::unique_ptr<WordLink> link(new WordLink(device, *std::move(word)));
  link->before_ = std::move(before);
  return link;
}

WordLink::~WordLink() {
  end();
  const cuda::Device::Current current(*device_);
  before_.reset();
}

Result<bool> WordLink::may_begin() {
  if (before_ == nullptr) return true;
  const cuda::Device::Current current(*device_);
  Result<bool> happened = before_->happened();
  if (happened.ok() && *happened) before_.reset();
  return happened;
}

Result<StreamWait> WordLink::wait_on(void* stream) {
  const cuda::Device::Current current(*device_);
  const auto handle = static_cast<cuda::StreamHandle>(stream);
  if (Status refused = cuda::refuse_capture(device_->api(), handle); !refused.ok()) return refused;
  return StreamWait([device = device_, word = word_, handle, value = ended_at_] {
    const cuda::Device::Current in_use(*device);
    return word->hold(handle, value);
  });
}

void WordLink::end() {
  if (!std::exchange(has_ended_, true)) word_->advance();
}

}  // namespace tutti::staged
