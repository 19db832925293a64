#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/cuda/api.h"
#include "transport/cuda/device.h"

namespace tutti::cuda {

// A `Word` is a number in pinned memory that only grows. Streams can wait until it has reached a value. A
// stream can be told to wait for a value even if the work that leads to this value is not in any stream yet.
// By contrast, a stream cannot wait for a CUDA event that has not been recorded yet.
//
// A stream may still wait for a `Word` that has been destroyed. So the memory of words is never freed. The
// next `Word` in the same place continues to count from the last value, and so releases such a stream.
class Word {
 public:
  // Takes a word that is free, or makes new words. The device must be `Current`. Any thread may call.
  static Result<std::unique_ptr<Word>> take(const Device& device);
  ~Word();
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;

  std::uint32_t value() const;
  // Adds 1. One thread at a time may call it.
  void advance();
  // Makes a stream, which may be of another device, wait until the word has reached `value`. Returns at once.
  Status hold(StreamHandle stream, std::uint32_t value) const;

  // The words of a device are made a page at a time.
  static constexpr std::size_t page_bytes = 4096;

 private:
  struct Place {
    std::uint32_t* word = nullptr;
    Address address = 0;
  };
  class Places;

  Word(const Api& api, Places& places, Place place) : api_(api), places_(places), place_(place) {}
  const Api& api_;
  Places& places_;
  const Place place_;
};

}  // namespace tutti::cuda
