#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::test {

// A `FakeTransfer` is a message of the fake NCCL. Its sender and its receiver both describe it. The
// message never ends if the two descriptions differ.
struct FakeTransfer {
  bool sends = false;
  int peer = 0;
  std::uint64_t tag = 0;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;  // bytes that have moved, including the description of the message
};

// The `FakeChannels` of a communicator connect its ranks through shared memory, which all ranks find by name.
class FakeChannels {
 public:
  FakeChannels(const std::string& name, int rank, int size);
  ~FakeChannels();
  FakeChannels(const FakeChannels&) = delete;
  FakeChannels& operator=(const FakeChannels&) = delete;

  // Returns false if the shared memory could not be made.
  bool usable() const { return memory_ != nullptr; }
  // Returns whether all ranks have opened the shared memory.
  bool complete();
  // Tells the other ranks that this rank leaves.
  void leave();
  bool all_leave() const;
  // Moves all messages at the same time. Messages between the same ranks keep their order. Ends
  // early if `gives_up` becomes true.
  void move(std::vector<FakeTransfer>& transfers, const std::atomic<bool>& gives_up);

 private:
  struct Ring;
  struct Shared;
  // Moves a part of the message. Returns whether any bytes moved.
  bool advance(FakeTransfer& transfer);
  Ring& ring(int from, int to);
  std::size_t total_bytes() const;

  const std::string name_;
  const int rank_;
  const int size_;
  Shared* memory_ = nullptr;
};

}  // namespace tutti::test
