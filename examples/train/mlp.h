#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "data.h"
#include "random.h"

// `Mlp` is a multi-layer perceptron. Each unit of a layer is a weighted sum of the layer below plus a bias,
// and negative values become zero (ReLU). The top layer has softmax and cross entropy instead. The code uses
// plain loops over float32, so each run gives the same result.
//
// All parameters lie in one vector, layer after layer. Their gradients lie in another one in the same order.
// So consecutive layers are one piece of memory, which can be sent without copying.
class Mlp {
 public:
  // Makes a network with `units[0]` inputs, ..., and `units.back()` classes. All parameters are zero.
  explicit Mlp(const std::vector<int>& units) {
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
      layers_.push_back({units[i], units[i + 1], parameter_count_});
      parameter_count_ += layers_.back().parameters();
    }
    parameters_.resize(parameter_count_);
    gradients_.resize(parameter_count_);
    outputs_.resize(layers_.size());
  }

  // Sets random weights by He initialisation (He et al. 2015, "Delving Deep into Rectifiers"), so that
  // activations neither grow nor shrink from layer to layer. The biases stay zero.
  void initialise(Random random) {
    for (const Layer& layer : layers_) {
      float* weights = parameters_.data() + layer.offset;
      const float limit = std::sqrt(6.0f / static_cast<float>(layer.inputs));
      for (int i = 0; i < layer.inputs * layer.outputs; ++i) weights[i] = random.uniform(limit);
    }
  }

  std::vector<float>& parameters() { return parameters_; }
  std::vector<float>& gradients() { return gradients_; }

  struct Score {
    double loss = 0;  // summed over the images
    int correct = 0;
  };

  Score forward(std::span<const Image* const> images) {
    input_.resize(images.size() * pixels);
    for (std::size_t b = 0; b < images.size(); ++b) {
      std::copy(images[b]->grey.begin(), images[b]->grey.end(), &input_[b * pixels]);
    }
    const std::vector<float>* below = &input_;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      forward_layer(layers_[l], *below, outputs_[l], images.size(), l + 1 < layers_.size());
      below = &outputs_[l];
    }
    return softmax(images);
  }

  // Computes the gradients of the loss on the images, times `scale`, from the top layer down. Calls
  // `layer_done` with the gradients of each layer as soon as they are final. Call `forward` with the same
  // images first.
  void backward(std::span<const Image* const> images, float scale,
                const std::function<void(std::span<float>)>& layer_done) {
    std::vector<float> delta = probabilities_;  // derivative of the loss with respect to each weighted sum
    for (std::size_t b = 0; b < images.size(); ++b) delta[b * classes + images[b]->digit] -= 1;
    for (float& value : delta) value *= scale;
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      const std::span<float> gradients = std::span(gradients_).subspan(layer.offset, layer.parameters());
      layer_gradients(layer, l > 0 ? outputs_[l - 1] : input_, delta, images.size(), gradients);
      layer_done(gradients);
      if (l > 0) delta = delta_below(layer, outputs_[l - 1], delta, images.size());
    }
  }

 private:
  // A layer's parameters are weights[input][output], then bias[output].
  struct Layer {
    int inputs;
    int outputs;
    std::size_t offset;
    std::size_t parameters() const { return static_cast<std::size_t>(inputs + 1) * outputs; }
  };

  // Computes target += factor * row. Compilers can use vector instructions for this form of the
  // loop.
  static void add_row(float* __restrict target, const float* __restrict row, float factor, int count) {
    for (int i = 0; i < count; ++i) target[i] += factor * row[i];
  }

  void forward_layer(const Layer& layer, const std::vector<float>& in, std::vector<float>& out,
                     std::size_t batch, bool relu) const {
    const float* weights = parameters_.data() + layer.offset;
    const float* bias = weights + layer.inputs * layer.outputs;
    out.resize(batch * layer.outputs);
    for (std::size_t b = 0; b < batch; ++b) {
      float* row = out.data() + b * layer.outputs;
      std::copy(bias, bias + layer.outputs, row);
      for (int i = 0; i < layer.inputs; ++i) {
        const float value = in[b * layer.inputs + i];
        if (value != 0) add_row(row, weights + i * layer.outputs, value, layer.outputs);
      }
      if (relu) std::for_each(row, row + layer.outputs, [](float& x) { x = std::max(x, 0.0f); });
    }
  }

  // Computes the probability of each digit, and the loss.
  Score softmax(std::span<const Image* const> images) {
    Score score;
    probabilities_ = outputs_.back();
    for (std::size_t b = 0; b < images.size(); ++b) {
      float* row = &probabilities_[b * classes];
      const float* best = std::max_element(row, row + classes);
      const float largest = *best;
      score.correct += best - row == images[b]->digit ? 1 : 0;
      double sum = 0;
      for (int c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c] - largest));
      score.loss += std::log(sum) - static_cast<double>(row[images[b]->digit] - largest);
      for (int c = 0; c < classes; ++c) {
        row[c] = static_cast<float>(std::exp(static_cast<double>(row[c] - largest)) / sum);
      }
    }
    return score;
  }

  static void layer_gradients(const Layer& layer, const std::vector<float>& in,
                              const std::vector<float>& delta, std::size_t batch,
                              std::span<float> gradients) {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    float* bias = gradients.data() + layer.inputs * layer.outputs;
    for (std::size_t b = 0; b < batch; ++b) {
      const float* row = delta.data() + b * layer.outputs;
      for (int i = 0; i < layer.inputs; ++i) {
        const float value = in[b * layer.inputs + i];
        if (value != 0) add_row(gradients.data() + i * layer.outputs, row, value, layer.outputs);
      }
      add_row(bias, row, 1, layer.outputs);
    }
  }

  std::vector<float> delta_below(const Layer& layer, const std::vector<float>& in,
                                 const std::vector<float>& delta, std::size_t batch) const {
    std::vector<float> below(batch * layer.inputs);
    for (std::size_t b = 0; b < batch; ++b) {
      for (int i = 0; i < layer.inputs; ++i) {
        // The ReLU has set this unit to zero, so its gradient is zero.
        if (in[b * layer.inputs + i] <= 0) continue;
        const float* weights = parameters_.data() + layer.offset + i * layer.outputs;
        float sum = 0;
        for (int o = 0; o < layer.outputs; ++o) sum += weights[o] * delta[b * layer.outputs + o];
        below[b * layer.inputs + i] = sum;
      }
    }
    return below;
  }

  std::vector<Layer> layers_;
  std::size_t parameter_count_ = 0;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> input_;
  std::vector<std::vector<float>> outputs_;  // the outputs of each layer, image after image
  std::vector<float> probabilities_;
};
