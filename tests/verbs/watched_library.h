#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/verbs/tapped_library.h"

namespace tutti::test {

// `Usage` says what has been asked of a `WatchedLibrary` so far.
struct Usage {
  int regions = 0;  // these three count objects that exist
  int pairs = 0;
  int writers = 0;  // queue pairs that have written something
  std::uint64_t registrations = 0;
  std::uint64_t messages = 0;   // requests that send a header of 64 bytes and a payload
  std::uint64_t packets = 0;    // all requests that send a packet
  std::uint64_t inlined = 0;    // packets that were sent inline
  std::uint64_t in_place = 0;   // bytes that were written from the memory that `expect_from` names
  std::uint64_t elsewhere = 0;  // bytes that were written from other memory: copies
  std::map<std::string, std::uint64_t> written;  // bytes that each device has written
};

// `WatchedLibrary` is the library under test (`TestedLibrary`). It counts how a program uses the library, and
// can break queue pairs. Only one exists at a time. Any thread may call its functions.
class WatchedLibrary {
 public:
  WatchedLibrary();
  ~WatchedLibrary();
  WatchedLibrary(const WatchedLibrary&) = delete;
  WatchedLibrary& operator=(const WatchedLibrary&) = delete;

  const verbs::Functions& functions() { return library_.functions(); }
  Usage usage();
  // Counts bytes that are written from this memory as `Usage::in_place`.
  void expect_from(std::span<const std::byte> memory);
  // Moves a connected queue pair to the error state, as a card does that has found an error. `choice` says
  // which one. Returns false if there is none.
  bool break_pair(std::size_t choice);

 private:
  void add_object_calls();
  void add_pair_calls();
  void count(const ibv_qp& pair, const ibv_send_wr& request);
  bool is_expected(const ibv_sge& piece) const;

  static inline WatchedLibrary* current = nullptr;

  TappedLibrary library_;
  std::mutex mutex_;  // guards everything below
  Usage usage_;
  std::set<ibv_qp*> connected_;
  std::set<const ibv_qp*> writers_;
  std::vector<std::span<const std::byte>> expected_;
};

}  // namespace tutti::test
