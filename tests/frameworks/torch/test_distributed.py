"""Data-parallel training over gloo, two processes."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys, torch, torch.distributed as dist, gradsmith as gs
from torch.nn.parallel import DistributedDataParallel

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, bias=False)
        self.weight = torch.nn.Parameter(torch.tensor(2.0))
        torch.nn.init.eye_(self.linear.weight)

    @gs.custom_gradient
    def scaled(self, x):
        return x * self.weight, lambda dy: 10 * dy * self.weight

    def forward(self, x):
        return self.scaled(self.linear(x))

def work(rank, store):
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    net = DistributedDataParallel(Net())
    net(torch.full((1, 3), rank + 1.0)).sum().backward()
    # The mean over both: x is 1 and 2
    assert net.module.weight.grad == 4.5, net.module.weight.grad
    assert net.module.linear.weight.grad.tolist() == [[30.0] * 3] * 3
    del net  # its reducer waits for the group
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads may abort the interpreter on its way out

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
"""


def test_two_processes(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    store = (tmp_path / "store").as_uri()
    run = [sys.executable, str(script), store]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
