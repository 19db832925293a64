#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "bench/peers/collective.h"

namespace tutti::perf {

// A `Peer` is one rank that uses the measured library. harness.cc measures all peers in the same way.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns a function that runs the collective once from `in` to `out` and waits for its end. The function
  // is empty if the library lacks the collective. `count` is the number of elements of the vector, or of one
  // block if the collective has blocks. A library that only works in place may take `out` as its input, since
  // the harness fills both buffers with the same data before each run that it verifies.
  virtual std::function<void()> prepare(Collective collective, float* in, float* out, std::size_t count) = 0;

  // Allocates the library's own kind of memory, if the measurement uses such memory. Returns null
  // if the harness should use ordinary memory. All ranks call this together.
  virtual std::shared_ptr<float> allocate(std::size_t) { return nullptr; }

  // The harness uses these two between measurements.
  virtual void barrier() = 0;
  // Replaces each value with its maximum over all ranks.
  virtual void largest(std::span<double> values) = 0;
};

}  // namespace tutti::perf
