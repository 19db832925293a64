#include "transport/nccl/lane.h"

#include <cstddef>
#include <new>
#include <utility>

namespace tutti::nccl {

namespace {

constexpr std::size_t words_per_device = 1024;

}  // namespace

Result<std::shared_ptr<Lane>> Lane::open(const cuda::Api& api, int number) {
  Result<std::unique_ptr<cuda::Device>> device = cuda::Device::open(api, number);
  if (!device.ok()) return device.status();
  const cuda::Device::Current current(**device);
  auto words = cuda::PinnedMemory::create(**device, words_per_device * sizeof(std::uint32_t));
  if (!words.ok()) return words.status();
  return std::shared_ptr<Lane>(new Lane(std::move(device).take(), std::move(words).take()));
}

Lane::Lane(std::unique_ptr<cuda::Device> device, std::unique_ptr<cuda::PinnedMemory> words)
    : device_(std::move(device)), words_(words.release(), Unpin{device_.get()}) {
  auto* const first = reinterpret_cast<std::uint32_t*>(words_->data());
  for (std::size_t i = 0; i < words_per_device; ++i) free_words_.push_back(new (first + i) std::uint32_t{0});
}

void Lane::Unpin::operator()(cuda::PinnedMemory* memory) const {
  const cuda::Device::Current current(*device);
  delete memory;
}

void Lane::queue(User& user) {
  turns_.push_back(&user);
  advance();
}

void Lane::launched() {
  launches_ = nullptr;
  advance();
}

void Lane::leave(User& user) {
  std::erase(turns_, &user);
  if (launches_ == &user) launched();
}

void Lane::advance() {
  while (launches_ == nullptr && !turns_.empty()) {
    User* const next = turns_.front();
    turns_.pop_front();
    if (!next->launch()) launches_ = next;
  }
}

std::uint32_t* Lane::take_word() {
  if (free_words_.empty()) return nullptr;
  std::uint32_t* const word = free_words_.back();
  free_words_.pop_back();
  return word;
}

cuda::Address Lane::address_of(const std::uint32_t* word) const {
  const auto offset = reinterpret_cast<const std::byte*>(word) - words_->data();
  return words_->address() + static_cast<cuda::Address>(offset);
}

}  // namespace tutti::nccl
