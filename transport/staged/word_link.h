#pragma once

#include <cstdint>
#include <memory>

#include "transport/cuda/device.h"
#include "transport/cuda/word.h"
#include "transport/offload/stream_link.h"

namespace tutti::staged {

// A `WordLink` lets messages follow a stream by an event, and lets streams wait for the messages by a
// `cuda::Word`.
class WordLink final : public StreamLink {
 public:
  // `stream` may be null. Fails like `Copier::link`.
  static Result<std::unique_ptr<WordLink>> create(const std::shared_ptr<const cuda::Device>& device,
                                                  void* stream);
  ~WordLink() override;

  Result<bool> may_begin() override;
  Result<StreamWait> wait_on(void* stream) override;
  void end() override;

 private:
  WordLink(std::shared_ptr<const cuda::Device> device, std::shared_ptr<cuda::Word> word)
      : device_(std::move(device)), word_(std::move(word)), ended_at_(word_->value() + 1) {}

  const std::shared_ptr<const cuda::Device> device_;
  const std::shared_ptr<cuda::Word> word_;
  const std::uint32_t ended_at_;         // the word reaches this value at the end
  std::unique_ptr<cuda::Event> before_;  // null: the messages may begin
  bool has_ended_ = false;
};

}  // namespace tutti::staged
