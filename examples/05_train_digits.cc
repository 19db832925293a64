// Trains a small neural network to read handwritten digits, on all ranks together.
//
//   tutti run -n 4 -- 05_train_digits
//
// Every rank holds the whole network. Each rank takes its share of every batch of images and
// computes the gradients for that share. all_reduce adds up the gradients of all ranks. Then all
// ranks take the same step, so their networks stay equal, to the last bit. The number of ranks
// changes the speed, but hardly the result: only the order in which numbers are added up differs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/print.h"
#include "train/data.h"
#include "train/gradients.h"
#include "train/mlp.h"
#include "train/random.h"
#include "train/weights.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr double wanted_accuracy = 0.95;
constexpr float momentum = 0.9f;
constexpr std::size_t bucket_size = 8192;  // gradients

struct Settings {
  int epochs;
  std::size_t batch;  // images per step, of all ranks together
  float learning_rate;
  std::vector<int> units;
  std::uint64_t seed;

  explicit Settings(const Options& options)
      : epochs(options.number("epochs", 30)),
        batch(options.number("batch", std::size_t{64})),
        learning_rate(options.number("lr", 0.05f)),
        seed(options.number("seed", std::uint64_t{1})) {
    const int hidden = options.number("hidden", 128);
    if (epochs < 1 || batch < 1 || hidden < 1)
      throw std::invalid_argument("--epochs, --batch, --hidden: at least 1");
    if (!(learning_rate > 0)) throw std::invalid_argument("--lr: more than 0");
    units = {pixels, hidden, (hidden + 1) / 2, classes};
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Trainer {
 public:
  Trainer(tutti::Communicator& comm, Mlp& network, const Digits& digits, const Settings& settings)
      : comm_(comm),
        network_(network),
        digits_(digits),
        settings_(settings),
        velocity_(network.parameters().size()),
        gradient_sum_(comm, bucket_size) {}

  // Makes one pass over all training images. Their order differs between epochs, but is the same on all
  // ranks. Returns the mean loss of the epoch.
  double run_epoch(int epoch) {
    std::vector<const Image*> order;
    for (const Image& image : digits_.train) order.push_back(&image);
    Random(settings_.seed * 1'000'003 + epoch).shuffle(order);

    std::array<double, 1> loss{0};
    Clock::time_point last_sign = Clock::now();
    for (std::size_t first = 0; first < order.size(); first += settings_.batch) {
      const std::size_t batch = std::min(settings_.batch, order.size() - first);
      loss[0] += step(std::span(order).subspan(first, batch));
      if (comm_.rank() == 0 && seconds_since(last_sign) > 2) {
        print("epoch ", epoch, ": ", first + batch, " of ", order.size(), " images");
        last_sign = Clock::now();
      }
    }
    comm_.all_reduce(loss, tutti::ReduceOp::sum).wait();
    return loss[0] / static_cast<double>(order.size());
  }

  struct Result {
    double loss;
    double accuracy;
  };

  // Returns the network's result on `images`. Each rank classifies its share of them.
  Result evaluate(const std::vector<Image>& images) {
    const Slice mine = share(images.size(), comm_.rank(), comm_.size());
    std::vector<const Image*> shard;
    for (std::size_t i = mine.first; i < mine.last; ++i) shard.push_back(&images[i]);
    const Mlp::Score score = network_.forward(shard);
    std::array<double, 2> sums{score.loss, static_cast<double>(score.correct)};
    comm_.all_reduce(sums, tutti::ReduceOp::sum).wait();
    return {sums[0] / static_cast<double>(images.size()), sums[1] / static_cast<double>(images.size())};
  }

 private:
  // Trains on one batch. Returns the loss of this rank's share of the batch.
  double step(std::span<const Image* const> batch) {
    const Slice mine = share(batch.size(), comm_.rank(), comm_.size());
    const auto shard = batch.subspan(mine.first, mine.size());
    const double loss = network_.forward(shard).loss;
    // Each rank divides its gradients by the size of the whole batch. So the sum over the ranks is the mean
    // over the batch, even if the ranks' shares differ in size.
    network_.backward(shard, 1.0f / static_cast<float>(batch.size()),
                      [this](std::span<float> layer) { gradient_sum_.add(layer); });
    gradient_sum_.wait();

    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      velocity_[i] = momentum * velocity_[i] + network_.gradients()[i];
      network_.parameters()[i] -= settings_.learning_rate * velocity_[i];
    }
    return loss;
  }

  tutti::Communicator& comm_;
  Mlp& network_;
  const Digits& digits_;
  const Settings& settings_;
  std::vector<float> velocity_;
  GradientSum gradient_sum_;
};

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv, {"data", "epochs", "batch", "lr", "hidden", "seed"});
  const Settings settings(options);
  const Digits digits =
      options.has("data") ? load_digits({options.text("data", "")}) : load_digits({DIGITS_CSV});
  // The network is made before the communicator, so it outlives every operation on its gradients, even after
  // an error.
  Mlp network(settings.units);

  tutti::Communicator comm = tutti::init(options.init);
  const bool speaker = comm.rank() == 0;
  if (speaker) {
    print("training on ", digits.train.size(), " images, testing on ", digits.test.size(), "; ", comm.size(),
          " ranks, batch ", settings.batch, ", ", network.parameters().size(), " weights");
    network.initialise(Random(settings.seed));
  }
  comm.broadcast(network.parameters(), 0).wait();

  Trainer trainer(comm, network, digits, settings);
  for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
    const Clock::time_point start = Clock::now();
    const double loss = trainer.run_epoch(epoch);
    const double speed = static_cast<double>(digits.train.size()) / seconds_since(start);
    const auto test = trainer.evaluate(digits.test);
    if (speaker) {
      print("epoch ", std::setw(2), epoch, ": loss ", std::fixed, std::setprecision(4), loss,
            ", test accuracy ", std::setprecision(1), 100 * test.accuracy, " %, ", std::setprecision(0),
            speed, " samples/s");
    }
  }

  const auto train = trainer.evaluate(digits.train);
  const auto test = trainer.evaluate(digits.test);
  if (speaker) {
    print("final training loss ", std::fixed, std::setprecision(6), train.loss);
    print("final test accuracy ", std::fixed, std::setprecision(2), 100 * test.accuracy, " %");
  }
  const bool equal = compare_weights(comm, network.parameters());
  const bool good = test.accuracy >= wanted_accuracy;
  if (!good)
    std::cerr << "05_train_digits: the test accuracy is less than " << 100 * wanted_accuracy << " %\n";
  return equal && good ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "05_train_digits: " << error.what() << std::endl;
  return 1;
}
