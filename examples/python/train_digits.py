"""Trains a small neural network to read handwritten digits, on all ranks together, in NumPy.

    tutti run -n 4 -- python train_digits.py

Every rank holds the whole network. Each rank takes its share of every batch of images and computes the gradients for
that share, from the top layer down. A GradientReducer adds up the gradients of all ranks while the gradients of
the layers below are still being computed. Then all ranks take the same step, so their networks stay equal, to the last bit.
The data and the network are the same as in 05_train_digits, which is in C++.
"""

import argparse
import hashlib
import pathlib
import sys
import time

import numpy

import tutti

WANTED_ACCURACY = 0.95
MOMENTUM = numpy.float32(0.9)
HERE = pathlib.Path(__file__).parent


def load(path):
    """Returns the training images and digits, and the test images and digits. Every fifth image is for the test."""
    table = numpy.loadtxt(path, delimiter=",", dtype="float32")
    images, digits = table[:, :64] / 16, table[:, 64].astype("int64")
    for_test = numpy.arange(len(table)) % 5 == 4
    return images[~for_test], digits[~for_test], images[for_test], digits[for_test]


def share(count, comm):
    """Returns the slice of `count` items that belongs to this rank."""
    return slice(count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size)


class Network:
    """A multi-layer perceptron: each unit is a weighted sum of the layer below plus a bias, and negative values become
    zero (ReLU). The top has softmax and cross entropy. `parameters` lists the weights and biases of each layer."""

    def __init__(self, units, seed):
        random = numpy.random.default_rng(seed)
        self.parameters = []
        for below, above in zip(units, units[1:]):
            limit = numpy.sqrt(6 / below)  # He et al. 2015, "Delving Deep into Rectifiers"
            self.parameters.append(random.uniform(-limit, limit, (below, above)).astype("float32"))
            self.parameters.append(numpy.zeros(above, "float32"))

    def forward(self, images, digits):
        """Returns the sum of the losses, and the number of digits that the network recognises."""
        self.inputs = [images]
        layers = len(self.parameters) // 2
        for layer in range(layers):
            out = self.inputs[-1] @ self.parameters[2 * layer] + self.parameters[2 * layer + 1]
            if layer + 1 < layers:
                self.inputs.append(numpy.maximum(out, 0))
        out -= out.max(axis=1, keepdims=True)
        exponentials = numpy.exp(out)
        sums = exponentials.sum(axis=1)
        self.probabilities = exponentials / sums[:, None]
        loss = (numpy.log(sums) - out[numpy.arange(len(digits)), digits]).sum(dtype="float64")
        return loss, (out.argmax(axis=1) == digits).sum()

    def backward(self, digits, scale, gradients, ready):
        """Computes the gradients, times `scale`. Calls `ready(i)` as soon as gradient i is final.
        Call `forward` first."""
        delta = self.probabilities.copy()
        delta[numpy.arange(len(digits)), digits] -= 1
        delta *= numpy.float32(scale)
        for layer in reversed(range(len(self.parameters) // 2)):
            delta.sum(axis=0, out=gradients[2 * layer + 1])
            ready(2 * layer + 1)
            numpy.matmul(self.inputs[layer].T, delta, out=gradients[2 * layer])
            ready(2 * layer)
            if layer > 0:
                delta = (delta @ self.parameters[2 * layer].T) * (self.inputs[layer] > 0)


def evaluate(comm, network, images, digits):
    """Returns the mean loss and the accuracy. Each rank evaluates its share of the images."""
    mine = share(len(images), comm)
    sums = numpy.array(network.forward(images[mine], digits[mine]), "float64")
    comm.all_reduce(sums).wait()
    return sums / len(images)


def train(comm, network, images, digits, options):
    # Each rank divides its gradients by the size of the whole batch. So the sum over the ranks is the mean over the
    # batch, even if the ranks' shares differ in size.
    reducer = tutti.GradientReducer(
        comm, [p.shape for p in network.parameters], bucket_bytes=32 << 10, mean=False
    )
    velocities = [numpy.zeros_like(p) for p in network.parameters]
    for epoch in range(1, options.epochs + 1):
        start = time.perf_counter()
        # The order differs between epochs, but is the same on all ranks.
        order = numpy.random.default_rng((options.seed, epoch)).permutation(len(images))
        loss = numpy.zeros(1)
        for first in range(0, len(order), options.batch):
            batch = order[first : first + options.batch]
            mine = batch[share(len(batch), comm)]
            loss += network.forward(images[mine], digits[mine])[0]
            network.backward(digits[mine], 1 / len(batch), reducer.gradients, reducer.ready)
            reducer.wait()
            for weights, velocity, gradient in zip(network.parameters, velocities, reducer.gradients):
                velocity *= MOMENTUM
                velocity += gradient
                weights -= numpy.float32(options.lr) * velocity
        comm.all_reduce(loss).wait()
        if comm.rank == 0:
            speed = len(images) / (time.perf_counter() - start)
            print(f"epoch {epoch:2}: loss {loss[0] / len(images):.4f}, {speed:.0f} samples/s", flush=True)


def equal_everywhere(comm, parameters):
    """Returns whether all ranks hold the same bits, and a hash of this rank's bits."""
    digest = hashlib.sha256(b"".join(p.tobytes() for p in parameters)).digest()
    mine = numpy.frombuffer(digest, "uint8")
    everybodys = numpy.empty((comm.size, len(mine)), "uint8")
    comm.all_gather(mine, everybodys).wait()
    return (everybodys == mine).all(), digest.hex()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, help="without it, the launcher's variables count")
    parser.add_argument("--world-size", type=int)
    parser.add_argument("--init-method", help="env://, tcp://host:port, file:///path or mpi://")
    parser.add_argument("--backend", default="tutti", help="a transport; tutti: all that work here")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", default=HERE.parent / "data" / "digits.csv")
    options = parser.parse_args()
    images, digits, test_images, test_digits = load(options.data)
    transports = [] if options.backend == "tutti" else [options.backend]
    with tutti.init(options.init_method, options.rank, options.world_size, transports=transports) as comm:
        network = Network([64, options.hidden, (options.hidden + 1) // 2, 10], options.seed + comm.rank)
        # All ranks begin with rank 0's weights.
        works = [comm.broadcast(p) for p in network.parameters]
        for work in works:
            work.wait()
        train(comm, network, images, digits, options)
        loss, _ = evaluate(comm, network, images, digits)
        _, accuracy = evaluate(comm, network, test_images, test_digits)
        equal, digest = equal_everywhere(comm, network.parameters)
        if comm.rank == 0:
            print(f"final training loss {loss:.6f}")
            print(f"final test accuracy {100 * accuracy:.2f} %")
            print(f"all {comm.size} ranks hold bitwise equal weights (hash {digest})" if equal else "weights differ")
    good = accuracy >= WANTED_ACCURACY
    if not good:
        print(f"the test accuracy is less than {100 * WANTED_ACCURACY:.0f} %", file=sys.stderr)
    return 0 if equal and good else 1


if __name__ == "__main__":
    sys.exit(main())
