// Trains a network, and continues when a rank dies.
//
//   for r in 0 1 2 3; do
//     06_survive --init-method tcp://127.0.0.1:29500 --world-size 4 --rank $r --victim 1 --at 100 &
//   done; wait
//
// The program uses the images of 05_train_digits, and the same kind of network. When a rank dies, all
// operations of the other ranks fail with `peer_lost`. The other ranks agree on a smaller communicator and
// continue from their last step.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/print.h"
#include "train/data.h"
#include "train/mlp.h"
#include "train/random.h"
#include "train/weights.h"

namespace {

constexpr float learning_rate = 0.2f;
constexpr std::size_t batch_size = 64;  // images per step, of all remaining ranks together

// `State` holds the weights of a rank and the number of steps that led to them.
struct State {
  Mlp network{{pixels, 64, 32, classes}};
  std::int64_t step = 0;
};

// Returns the images of a step. They do not depend on the number of remaining ranks.
std::vector<const Image*> batch_of(std::int64_t step, const std::vector<Image>& images) {
  Random random(static_cast<std::uint64_t>(step) + 1);
  std::vector<const Image*> all;
  for (const Image& image : images) all.push_back(&image);
  random.shuffle(all);
  all.resize(std::min(all.size(), batch_size));
  return all;
}

// Takes one step of gradient descent. If it throws, the weights and the number of the step are unchanged.
void learn(tutti::Communicator& comm, State& state, const std::vector<Image>& images) {
  const std::vector<const Image*> batch = batch_of(state.step, images);
  const Slice mine = share(batch.size(), comm.rank(), comm.size());
  const auto shard = std::span(batch).subspan(mine.first, mine.size());
  state.network.forward(shard);
  state.network.backward(shard, 1.0f / static_cast<float>(batch.size()), [](std::span<float>) {});
  comm.all_reduce(state.network.gradients(), tutti::ReduceOp::sum).wait();

  std::vector<float>& weights = state.network.parameters();
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= learning_rate * state.network.gradients()[i];
  ++state.step;
}

// Brings all ranks to the same step. An all_reduce may have succeeded on one rank and failed on another, so a
// rank that is ahead broadcasts its state.
void catch_up(tutti::Communicator& comm, State& state) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::span(&state.step, 1), steps).wait();
  const auto furthest = std::max_element(steps.begin(), steps.end());
  comm.broadcast(state.network.parameters(), static_cast<int>(furthest - steps.begin())).wait();
  state.step = *furthest;
}

// Returns the fraction of images that the network classifies correctly.
double accuracy(tutti::Communicator& comm, State& state, const std::vector<Image>& images) {
  const Slice mine = share(images.size(), comm.rank(), comm.size());
  std::vector<const Image*> shard;
  for (std::size_t i = mine.first; i < mine.last; ++i) shard.push_back(&images[i]);
  std::array<std::int64_t, 1> correct{state.network.forward(shard).correct};
  comm.all_reduce(correct, tutti::ReduceOp::sum).wait();
  return static_cast<double>(correct[0]) / static_cast<double>(images.size());
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv, {"steps", "victim", "at"});
  const std::int64_t steps = options.number("steps", 300);
  const int victim = options.number("victim", -1);
  const std::int64_t at = options.number("at", 100);
  const Digits digits = load_digits({DIGITS_CSV});
  State state;

  tutti::Communicator comm = tutti::init(options.init);
  const int rank = comm.rank();  // this process's rank before any failure, for messages
  if (rank == 0) state.network.initialise(Random(1));

  int told = comm.size();
  bool together = false;  // whether all ranks have the weights of the same step
  while (!together || state.step < steps) {
    try {
      if (!together) catch_up(comm, state);
      together = true;
      if (comm.size() != told) print("rank ", rank, ": ", comm.size(), " ranks go on from step ", state.step);
      told = comm.size();
      if (rank == victim && state.step == at) std::raise(SIGKILL);
      if (state.step < steps) learn(comm, state, digits.train);
    } catch (const tutti::Error& error) {
      if (error.code() != tutti::Code::peer_lost) throw;
      print("rank ", rank, " at step ", state.step, ": ", error.what());
      comm = comm.shrink(1).communicator;  // any number of survivors may continue
      together = false;
    }
  }

  const double correct = accuracy(comm, state, digits.test);
  if (comm.rank() == 0) {
    print("after ", state.step, " steps ", std::fixed, std::setprecision(1), 100 * correct,
          " % of the test images are read correctly");
  }
  return compare_weights(comm, state.network.parameters()) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "06_survive: " << error.what() << std::endl;
  return 1;
}
