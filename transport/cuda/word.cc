#include "transport/cuda/word.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tutti::cuda {

// `Places` holds the memory of all words of one device. It keeps the device's context alive, since a stream
// can only wait for memory of a context that exists.
class Word::Places {
 public:
  // Returns the places of a device. They exist until the process ends.
  static Places& of(const Device& device) {
    static std::mutex mutex;
    static auto& all = *new std::map<std::pair<const Api*, int>, Places>;
    const std::lock_guard lock(mutex);
    return all[{&device.api(), device.number()}];
  }

  Result<Place> take(const Device& device) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      if (const Status added = add_page(device); !added.ok()) return added;
    }
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(Place place) {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);
  }

 private:
  Status add_page(const Device& device) {
    if (device_ == nullptr) {
      Result<std::unique_ptr<Device>> opened = Device::open(device.api(), device.number());
      if (!opened.ok()) return opened.status();
      device_ = *std::move(opened);
    }
    Result<std::unique_ptr<PinnedMemory>> page = PinnedMemory::create(*device_, page_bytes);
    if (!page.ok()) return page.status();
    std::memset((*page)->data(), 0, page_bytes);
    for (std::size_t offset = 0; offset < page_bytes; offset += sizeof(std::uint32_t)) {
      auto* const word = reinterpret_cast<std::uint32_t*>((*page)->data() + offset);
      free_.push_back({word, (*page)->address() + offset});
    }
    pages_.push_back(*std::move(page));
    return {};
  }

  std::mutex mutex_;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<PinnedMemory>> pages_;
  std::vector<Place> free_;
};

Result<std::unique_ptr<Word>> Word::take(const Device& device) {
  Places& places = Places::of(device);
  const Result<Place> place = places.take(device);
  if (!place.ok()) return place.status();
  return std::unique_ptr<Word>(new Word(device.api(), places, *place));
}

Word::~Word() { places_.give_back(place_); }

std::uint32_t Word::value() const { return std::atomic_ref(*place_.word).load(std::memory_order_relaxed); }

void Word::advance() { std::atomic_ref(*place_.word).fetch_add(1, std::memory_order_release); }

// The driver's documentation allows a wait for an event of another context, but says nothing about a wait for
// a value. So the stream's own context is made current. Pinned memory has the same address in all contexts.
Status Word::hold(StreamHandle stream, std::uint32_t value) const {
  const Result<Context> context = context_of(api_, stream);
  if (!context.ok()) return context.status();
  const Device::Current current(api_, *context);
  return status_of(api_, api_.StreamWaitValue32(stream, place_.address, value, wait_value_at_least),
                   "cuStreamWaitValue32");
}

}  // namespace tutti::cuda
