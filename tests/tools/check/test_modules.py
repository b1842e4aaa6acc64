"""Stock modules of PyTorch, checked with their parameters, in seconds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradsmith as gs

from .helpers import native


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


class Decoder(nn.Module):
    """A small model of language: tokens to the logits of the next ones."""

    def __init__(self):
        super().__init__()
        layer = {"dropout": 0.0, "batch_first": True, "activation": "gelu"}
        self.tokens = nn.Embedding(7, 4)
        self.places = nn.Parameter(0.1 * torch.randn(3, 4))
        self.block = nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, **layer)
        self.logits = nn.Linear(4, 7)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places
        mask = torch.full((3, 3), -torch.inf, dtype=x.dtype).triu(1)
        return self.logits(self.block(x, src_mask=mask))


class Residual(nn.Module):
    """Convolutions, batch norm and a shortcut."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.second = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        return torch.relu(x + self.second(torch.relu(self.norm(x)))).mean((-1, -2))


MODULES = {
    "RNN": lambda: (nn.RNN(3, 4), normal(5, 2, 3)),
    "LSTM": lambda: (nn.LSTM(3, 4, batch_first=True), normal(2, 5, 3)),
    "GRU": lambda: (nn.GRU(3, 4, bidirectional=True), normal(5, 2, 3)),
    "MultiheadAttention": lambda: (
        nn.MultiheadAttention(4, 2), normal(5, 2, 4), normal(3, 2, 4), normal(3, 2, 4)
    ),
    "Embedding": lambda: (nn.Embedding(7, 3), torch.tensor([[1, 2], [6, 0]])),
    "EmbeddingBag": lambda: (
        nn.EmbeddingBag(7, 3), torch.tensor([1, 2, 6, 0, 1]), torch.tensor([0, 3])
    ),
    "BatchNorm1d": lambda: (nn.BatchNorm1d(4), normal(6, 4)),
    "BatchNorm1d, eval": lambda: (nn.BatchNorm1d(4).eval(), normal(6, 4)),
    "BatchNorm2d": lambda: (nn.BatchNorm2d(3), normal(4, 3, 2, 5)),
    "BatchNorm2d, not affine": lambda: (
        nn.BatchNorm2d(3, affine=False), normal(4, 3, 2, 5)
    ),
    "LayerNorm": lambda: (nn.LayerNorm(6), normal(3, 6)),
    "GroupNorm": lambda: (nn.GroupNorm(2, 4), normal(3, 4, 5)),
    "Conv2d": lambda: (nn.Conv2d(2, 3, 3, stride=2), normal(2, 2, 6, 7)),
    "TransformerEncoderLayer": lambda: (
        nn.TransformerEncoderLayer(4, 2, 8), normal(5, 2, 4)
    ),
    "TransformerEncoderLayer, eval": lambda: (
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), normal(2, 5, 4)
    ),
    "TransformerDecoderLayer": lambda: (
        nn.TransformerDecoderLayer(4, 2, 8), normal(5, 2, 4), normal(3, 2, 4)
    ),
    "a decoder": lambda: (Decoder(), torch.tensor([[1, 2, 0], [6, 3, 3]])),
    "a residual block": lambda: (Residual(), normal(3, 2, 4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_stock_modules_are_right(name):
    torch.manual_seed(0)
    module, *inputs = MODULES[name]()
    before = {key: x.clone() for key, x in module.state_dict().items()}
    report = gs.check(module, *inputs)
    assert report.verdict in ("right", "right, with limits"), report
    allowed = {"random", "forward mode", "second order"}  # some have none
    assert {limit.what for limit in report.limits} <= allowed, report
    assert not any("not reached" in note for note in report.notes), report
    for key, x in module.state_dict().items():
        torch.testing.assert_close(x, before[key], msg=key)


def test_a_wrong_parameter_among_many_is_found():
    wrong = native("torch", torch.mul, lambda dy, y, x, w: (dy * w, 1.01 * dy * x))
    wrong = getattr(wrong, "apply", wrong)

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.before = nn.Linear(4, 4)
            self.scale = nn.Parameter(torch.ones(4))
            self.after = nn.TransformerEncoderLayer(4, 2, 8)

        def forward(self, x):
            return self.after(wrong(self.before(x), self.scale.expand(x.shape)))

    torch.manual_seed(0)
    report = gs.check(Scaled(), normal(5, 2, 4))
    assert report.verdict == "wrong"
    assert {finding.argument for finding in report.findings} == {"scale"}, report
