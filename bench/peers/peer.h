#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "bench/peers/collective.h"

namespace tutti::perf {

// One rank of a library that is measured. What decides a figure is in harness.cc, the same for all peers.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Runs the collective once, to its end, from `in` to `out`; empty if this library does not have it.
  // `count` is the length of the vector, or of one block where it has blocks. A library that only knows the
  // form in place may take `out` as its input: it is filled as `in` is before each run that is verified.
  virtual std::function<void()> prepare(Collective collective, float* in, float* out, std::size_t count) = 0;

  // Memory of the library's own, where that is what is measured; null: ordinary memory. Collective.
  virtual std::shared_ptr<float> allocate(std::size_t) { return nullptr; }

  // For the harness's own use.
  virtual void barrier() = 0;
  virtual void largest(std::span<double> values) = 0;  // element-wise over the ranks, on all of them
};

}  // namespace tutti::perf
