#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tutti/tutti.h>

// `GradientSum` adds up the gradients of all ranks. It starts while the backward pass still computes the
// gradients of the lower layers.
//
// The backward pass completes layers from the top down, but memory holds them from the bottom up. So each
// layer that `add` gets lies directly before the layer that the previous call got. Neighbouring layers are
// collected in buckets, so that a few large messages replace many small ones. The all_reduce of a bucket
// starts as soon as the bucket is large enough.
class GradientSum {
 public:
  GradientSum(tutti::Communicator& comm, std::size_t bucket_size) : comm_(comm), bucket_size_(bucket_size) {}

  void add(std::span<float> layer) {
    bucket_ = {layer.data(), bucket_.size() + layer.size()};
    if (bucket_.size() >= bucket_size_) send();
  }

  // Waits for all sums. Afterwards the gradients are the sums over all ranks.
  void wait() {
    if (!bucket_.empty()) send();
    for (tutti::Work& work : in_flight_) work.wait();
    in_flight_.clear();
  }

 private:
  void send() {
    in_flight_.push_back(comm_.all_reduce(bucket_, tutti::ReduceOp::sum));
    bucket_ = {};
  }

  tutti::Communicator& comm_;
  const std::size_t bucket_size_;
  std::span<float> bucket_;
  std::vector<tutti::Work> in_flight_;
};
