#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/run/board.h"
#include "collectives/run/run.h"
#include "collectives/schedule/registered.h"

namespace tutti {

// `RegistrationVote` finds out whether the buffers of all ranks are registered, so that ranks can access each
// other's buffers. Each rank publishes where its buffers lie, and all ranks draw the same conclusion.
class RegistrationVote {
 public:
  // `Sizes` has the sizes in bytes of the input and of the output. Each size is the same on all ranks that
  // have such a buffer.
  struct Sizes {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
  };

  RegistrationVote(const Registry& registry, int size)
      : registry_(registry),
        inputs_(static_cast<std::size_t>(size)),
        outputs_(static_cast<std::size_t>(size)) {}

  // Publishes where this rank's buffers for operation `number` lie.
  void show(Board& board, std::uint64_t number, const RunBinding& binding, Sizes sizes) const;
  // Evaluates the votes of all ranks; all ranks get the same result. If it is true, `input` and `output`
  // return the addresses of the buffers.
  bool is_unanimous(Board& board, std::uint64_t number, const Fingerprint& call, Sizes sizes);

  // These two functions return the addresses of a rank's buffers after a unanimous vote; null for a buffer
  // that the rank does not have.
  std::byte* input(std::size_t rank) const { return inputs_[rank]; }
  std::byte* output(std::size_t rank) const { return outputs_[rank]; }

 private:
  const Registry& registry_;
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

}  // namespace tutti
