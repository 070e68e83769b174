"""The solution: Model from model.py on the kernels of this workspace.

    tokens = patch_embed      one CUDA pass into patches, then cuDNN with the bias fused; tokens come out channels-last
    normed = layer_norm       one CUDA pass, a row per warp
    hidden = linear_gelu      cuBLASLt, bias and GELU fused
    output = linear_residual  cuBLASLt, bias and residual fused

The weights are used as they lie in the parameters, never repacked and never remembered, so a change to them shows in
the next call. Products run in TF32; config=3 of patch_embed and of the linear layers is strict fp32.
"""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """The parameters of Model, under the same names and drawn in the same order; see Model for the arguments."""

    def __init__(self, channels: int, patch: int, embed: int, hidden: int):
        super().__init__()
        # These modules hold parameters; they are never called.
        self.patch_embed = nn.Conv2d(channels, embed, kernel_size=patch, stride=patch)
        self.norm = nn.LayerNorm(embed)
        self.fc1 = nn.Linear(embed, hidden)
        self.fc2 = nn.Linear(hidden, embed)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = cuda_extension.patch_embed(images, self.patch_embed.weight, self.patch_embed.bias)
        normed = cuda_extension.layer_norm(tokens, self.norm.weight, self.norm.bias, self.norm.eps)
        hidden = cuda_extension.linear_gelu(normed, self.fc1.weight, self.fc1.bias)
        return cuda_extension.linear_residual(hidden, self.fc2.weight, self.fc2.bias, tokens)
