"""Residual networks: ResNet-50 of 224 × 224 pictures, and a small one for digits. Source: He et al., 2016."""
import torch
from torch import nn


def convolution(inputs, outputs, size, stride=1):
    """A convolution without bias, and batch norm."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(outputs))


class Block(nn.Module):
    """What is added to its input: two convolutions, or with a bottleneck three,
    whose last is 4 times as wide."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        self.outputs = width * 4 if bottleneck else width
        if bottleneck:
            parts = [convolution(inputs, width, 1), nn.ReLU(), convolution(width, width, 3, stride),
                     nn.ReLU(),
                     convolution(width, self.outputs, 1)]
        else:
            parts = [convolution(inputs, width, 3, stride), nn.ReLU(), convolution(width, width, 3)]
        self.way = nn.Sequential(*parts)
        same = stride == 1 and inputs == self.outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, self.outputs, 1, stride)

    def forward(self, x):
        return torch.relu(self.way(x) + self.shortcut(x))


class ResNet(nn.Module):
    """Shape: pictures [batch, channels, height, width] float32 -> [batch, classes]."""

    def __init__(self, stem, channels, blocks, width, classes, bottleneck):
        super().__init__()
        layers = []
        for stage, count in enumerate(blocks):
            for number in range(count):
                layers.append(Block(channels, width << stage, 2 if stage > 0 and number == 0 else 1,
                                    bottleneck))
                channels = layers[-1].outputs
        self.stem, self.blocks = stem, nn.Sequential(*layers)
        self.top = nn.Linear(channels, classes)

    def forward(self, x):
        return self.top(self.blocks(self.stem(x)).mean((2, 3)))


def resnet50(classes):
    """25.6 million parameters with 1000 classes, in 161 tensors."""
    stem = nn.Sequential(convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return ResNet(stem, 64, (3, 4, 6, 3), 64, classes, bottleneck=True)


def small_resnet(classes):
    """For 8 × 8 pictures of one channel."""
    return ResNet(nn.Sequential(convolution(1, 16, 3), nn.ReLU()), 16, (1, 1, 1), 16, classes,
                  bottleneck=False)
