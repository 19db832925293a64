"""Trains a convolutional network in the style of MNIST tutorials, and averages the gradients by
hand. The program was written for Gloo. Only two lines were changed: the name of the backend, and
the import that registers it.

    tutti run -n 2 -- python mnist_style.py
"""
import torch
import torch.distributed as dist
import torch.nn.functional as F

import digits
import tutti.torch  # noqa: F401


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = torch.nn.Linear(32 * 2 * 2, 64)
        self.fc2 = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    dist.init_process_group("tutti")  # was: "gloo"
    torch.manual_seed(1234)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    (images, labels), (test_images, test_labels) = digits.load()
    for epoch in range(5):
        total = 0.0
        batches = list(digits.batches(images, labels, 64, epoch, dist.get_rank(), dist.get_world_size()))
        for data, target in batches:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data.view(-1, 1, 8, 8)), target)
            total += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        print(f"rank {dist.get_rank()}, epoch {epoch}: {total / len(batches):.4f}", flush=True)
    correct = (model(test_images.view(-1, 1, 8, 8)).argmax(1) == test_labels).float().mean()
    if dist.get_rank() == 0:
        print(f"test accuracy {100 * correct.item():.2f} %")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
