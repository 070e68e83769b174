"""The problem: the stem and one MLP block of a vision transformer (ViT-Base, 224 x 224 images in patches of 16 x 16).

    tokens = patch embedding of the images              a convolution whose window is its stride, (N, T, E)
    output = tokens + MLP(LayerNorm(tokens))            E -> 4 E -> E with GELU between

GELU is the tanh form, as in the original implementation of ViT in JAX, whose nn.gelu approximates by default.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Patch embedding, LayerNorm, MLP, residual.

    Args:
        channels: channels of an image.
        patch: height and width of a patch in pixels.
        embed: width of a token.
        hidden: width of the MLP's middle layer.
    """

    def __init__(self, channels: int, patch: int, embed: int, hidden: int):
        super().__init__()
        self.patch_embed = nn.Conv2d(channels, embed, kernel_size=patch, stride=patch)
        self.norm = nn.LayerNorm(embed)
        self.fc1 = nn.Linear(embed, hidden)
        self.act = nn.GELU(approximate="tanh")
        self.fc2 = nn.Linear(hidden, embed)
        # A trained norm is not the identity: off it, so that an answer without weight and bias is a wrong one.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(N, channels, H, W) to (N, (H / patch) (W / patch), embed), float32."""
        tokens = self.patch_embed(images).flatten(2).transpose(1, 2)
        return tokens + self.fc2(self.act(self.fc1(self.norm(tokens))))


batch_size = 64
channels = 3
image_size = 224
patch = 16
embed = 768
hidden = 3072


def get_inputs():
    return [torch.randn(batch_size, channels, image_size, image_size)]


def get_init_inputs():
    return [channels, patch, embed, hidden]


# The same problem small enough for a CPU.
def get_small_inputs():
    return [torch.randn(2, 3, 32, 48)]


def get_small_init_inputs():
    return [3, 8, 64, 96]
