#include "collectives/run/board.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

namespace tutti {

namespace {

constexpr std::uint64_t memory_page = 4096;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + memory_page - 1) / memory_page * memory_page;
}

}  // namespace

std::uint64_t Board::segment_bytes(int size, std::uint64_t window_bytes) {
  const auto p = static_cast<std::uint64_t>(size);
  return whole_pages(sizeof(Head) + p * sizeof(std::atomic<std::uint32_t>)) + whole_pages(p * sizeof(Area)) +
         p * window_bytes;
}

Board::Board(std::unique_ptr<SharedSegment> segment, int rank, int size, std::uint64_t window_bytes)
    : segment_(std::move(segment)), rank_(rank), size_(size), window_bytes_(window_bytes) {
  const auto p = static_cast<std::uint64_t>(size);
  std::byte* const memory = segment_->memory().data();
  // Everything on the board must start as zero, and new memory is zero. This constructor must not set
  // anything, since another rank may already be using the board.
  head_ = std::launder(reinterpret_cast<Head*>(memory));
  asleep_ = std::launder(reinterpret_cast<std::atomic<std::uint32_t>*>(memory + sizeof(Head)));
  const std::uint64_t head = whole_pages(sizeof(Head) + p * sizeof(std::atomic<std::uint32_t>));
  areas_ = std::launder(reinterpret_cast<Area*>(memory + head));
  windows_ = memory + head + whole_pages(p * sizeof(Area));
  for (int member = 0; member < size; ++member) bells_.push_back(&segment_->bell(member));
}

Fingerprint Board::call(int rank, std::uint64_t number) {
  const Slot& theirs = slot(rank, number);
  const std::array<std::uint64_t, 2> words = {theirs.call[0].load(std::memory_order_acquire),
                                              theirs.call[1].load(std::memory_order_acquire)};
  return std::bit_cast<Fingerprint>(words);
}

bool Board::learn_finished(std::uint64_t number) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < size_; ++i) {
    if (i == rank_) continue;
    const std::uint64_t theirs = area(i).finished.load(std::memory_order_acquire);
    if (theirs < number) return false;
    least = std::min(least, theirs);
  }
  known_finished_ = least;
  return true;
}

void Board::pulse() { finish(area(rank_).finished.load(std::memory_order_relaxed)); }

void Board::ring_sleepers() {
  for (int i = 0; i < size_; ++i) {
    // One ring is enough: before the sleeper sleeps again, it checks everything and sets its flag again.
    if (i != rank_ && asleep(i).load() != 0 && asleep(i).exchange(0) != 0)
      bells_[static_cast<std::size_t>(i)]->ring();
  }
}

void Board::sleep() {
  asleep(rank_).store(1);
  head_->sleeping.fetch_add(1);
}

void Board::wake() {
  asleep(rank_).store(0);
  head_->sleeping.fetch_sub(1);
}

void Board::fail(const Status& why) {
  Failure& failure = area(rank_).failure;
  if (failure.written.load(std::memory_order_relaxed) != 0) return;
  failure.code.store(static_cast<std::int32_t>(why.code()), std::memory_order_relaxed);
  failure.peer.store(why.peer(), std::memory_order_relaxed);
  const std::size_t length = std::min(why.message().size(), sizeof failure.text - 1);
  std::memcpy(failure.text, why.message().data(), length);
  failure.text[length] = '\0';
  failure.written.store(1, std::memory_order_release);
  head_->failures.fetch_add(1);
  // This wakes every rank, even if it sleeps for a reason other than an operation. A rank whose communicator
  // rests does not read the board, and learns of the failure from the control plane.
  for (int i = 0; i < size_; ++i) {
    if (i != rank_) bells_[static_cast<std::size_t>(i)]->ring();
  }
}

Status Board::heard() {
  if (head_->failures.load(std::memory_order_acquire) == heard_) return {};
  for (int i = 0; i < size_; ++i) {
    const Failure& failure = area(i).failure;
    if (i == rank_ || failure.written.load(std::memory_order_acquire) == 0) continue;
    heard_ = head_->failures.load(std::memory_order_acquire);
    // Another process wrote this, so nothing in it can be trusted.
    const std::int32_t code = failure.code.load(std::memory_order_relaxed);
    const bool known =
        code >= static_cast<std::int32_t>(Code::timeout) && code <= static_cast<std::int32_t>(Code::internal);
    const std::string text(failure.text, sizeof failure.text);
    return Status(known ? static_cast<Code>(code) : Code::internal, text.substr(0, text.find('\0')),
                  failure.peer.load(std::memory_order_relaxed));
  }
  return {};
}

}  // namespace tutti
