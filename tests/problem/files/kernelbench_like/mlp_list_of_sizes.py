# A perceptron whose layer sizes come as a list in the constructor.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, sizes, classes):
        super().__init__()
        layers = []
        for size in sizes:
            layers += [nn.Linear(features, size), nn.ReLU()]
            features = size
        self.net = nn.Sequential(*layers, nn.Linear(features, classes))
        for module in self.net:
            if isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(16, 20)]


def get_init_inputs():
    return [20, [32, 16, 32], 5]
