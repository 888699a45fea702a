"""The rivals of `tenon bench train`: the same nets in PyTorch, eager, Adam. Protocol: tools/bench/rival.h.

    python3 torch_train.py        any interpreter that has torch; `tenon bench train --torch-python PATH`

Best settings: denormals flushed, the better of one and two threads, OpenBLAS told the processor (by the caller).
"""
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(1)
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), torch.rand(128, 784)


def cnn():
    net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    return net, torch.rand(64, 1, 28, 28)


class Steps:
    def __init__(self, make, channels_last):
        self.net, self.x = make()
        if channels_last:
            self.net, self.x = self.net.to(memory_format=torch.channels_last), self.x.to(memory_format=torch.channels_last)
        self.target = torch.arange(self.x.shape[0]) * 7 % 10
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.loss = nn.CrossEntropyLoss()

    def run(self, calls):
        for _ in range(calls):
            loss = self.loss(self.net(self.x), self.target)
            self.adam.zero_grad(set_to_none=True)
            loss.backward()
            self.adam.step()

    def sample(self):
        """Nanoseconds of a step: one untimed, then a few."""
        self.run(1)
        begin = time.perf_counter_ns()
        calls = 0
        while calls < 1 or time.perf_counter_ns() - begin < 1_000_000:
            self.run(1)
            calls += 1
        return (time.perf_counter_ns() - begin) / calls


def open_case(name):
    make = {"train.mlp": mlp, "train.cnn": cnn}[name]
    best = None
    for threads in (1, 2):
        for channels_last in (False, True) if make is cnn else (False,):
            torch.set_num_threads(threads)
            steps = Steps(make, channels_last)
            steps.sample()
            ns = min(steps.sample() for _ in range(5))
            if best is None or ns < best[0]:
                best = (ns, threads, steps)
    torch.set_num_threads(best[1])
    return best[2]


def main():
    torch.set_flush_denormal(True)
    steps = None
    for line in sys.stdin:
        request = line.split()
        try:
            if request == ["info"]:
                answer = f"torch {torch.__version__} (Python), eager, better of 1 and 2 threads"
            elif request[:1] == ["open"]:
                steps = open_case(request[1])
                answer = "ok"
            elif request == ["sample"] and steps:
                answer = f"{steps.sample():.1f}"
            else:
                answer = "no such request"
        except Exception as error:  # whatever torch says: the parent shows it
            answer = "no " + str(error).replace("\n", " ")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
