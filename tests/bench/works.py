"""The works: which workload of `jackfield bench` each takes, and which figure of its report it is."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import peers


# A work that takes longer has no figure; the works after it have theirs.
LIMIT_S = 1800


class Failed(Exception):
    """Why a work has no figure."""


class TimeUp(Failed):
    """A run of the client was ended at its limit."""


class AtLeast(float):
    """A figure that was not measured to its end."""


class Work:
    """A figure of one workload. `streams` and `context` (tokens of each) are what the servers must have room for."""

    def __init__(self, workload, unit, figure, streams=1, context=4096, more_is_better=True):
        self.workload = workload
        self.unit = unit
        self.figure = figure
        self.streams = streams
        self.context = context
        self.more_is_better = more_is_better

    def ratio(self, ours, theirs):
        above, below = (ours, theirs) if self.more_is_better else (theirs, ours)
        return above / below if below else float("nan")

    def rounds(self, peer, file, args):
        """Both sides' figures, measured in turns."""
        servers = {"ours": peers.Ours, "theirs": peer}
        values = {"ours": [], "theirs": []}
        started = {}
        try:
            for side, kind in servers.items():
                started[side] = kind.start(file, args.threads, self.streams, self.context)
                started[side].still()
            for turn in range(args.rounds):
                for side, server in started.items():
                    server.wake()
                    values[side].append(self.value(server, seed(turn), args.quick))
                    server.still()
        finally:
            for server in started.values():
                server.stop()
        return values.items()

    def value(self, server, seed, quick):
        return self.figure(bench(server, self.workload, seed, quick))


class BusyCore(Work):
    """How many times slower a server gets when something else takes one core: the worse of reading and writing.

    Always a short run. One that has not ended at its limit tells a bound, and that side is not asked again.
    """

    LIMIT_S = 120

    def __init__(self):
        super().__init__(None, "x slower", None, more_is_better=False)

    def rounds(self, peer, file, args):
        servers = {"ours": peers.Ours, "theirs": peer}
        values = {"ours": [], "theirs": []}
        for turn in range(args.rounds):
            for side, kind in servers.items():
                if any(isinstance(value, AtLeast) for value in values[side]):
                    continue
                # A server of its own: one that was given up may still be at work.
                server = kind.start(file, args.threads, self.streams, self.context)
                try:
                    values[side].append(self.slow_down(server, seed(turn)))
                finally:
                    server.stop()
        return values.items()

    def slow_down(self, server, seed):
        works = [("prefill_512", prefill), ("decode_1", decode)]
        idle = [self.rate(server, workload, take, seed) for workload, take in works]
        core = max(os.sched_getaffinity(0))
        busy = subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"])
        worst = 0.0
        try:
            for (workload, take), (before, took_s) in zip(works, idle):
                try:
                    after, _ = self.rate(server, workload, take, seed + 1)
                except TimeUp:
                    return AtLeast(max(worst, self.LIMIT_S / took_s))
                worst = max(worst, before / after)
        finally:
            busy.kill()
            busy.wait()
        return worst

    def rate(self, server, workload, take, seed):
        """The rate, and how long the client ran for it."""
        begun = time.monotonic()
        rate = take(bench(server, workload, seed, quick=True, limit_s=self.LIMIT_S))
        return rate, time.monotonic() - begun


class StartToReady(Work):
    """From the start of the process to the first answer that says ready, with the file in the page cache."""

    def __init__(self):
        super().__init__(None, "s", None, more_is_better=False)

    def rounds(self, peer, file, args):
        servers = {"ours": peers.Ours, "theirs": peer}
        values = {"ours": [], "theirs": []}
        for turn in range(args.rounds + 1):
            for side, kind in servers.items():
                server = kind.start(file, args.threads, self.streams, self.context)
                server.stop()
                # The first turn warms the page cache.
                if turn:
                    values[side].append(server.start_to_ready_s)
        return values.items()


def bench(server, workload, seed, quick, limit_s=LIMIT_S):
    """One run of the client; its report of the workload."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [peers.OURS, "bench", workload, "--url", server.url, "--seed", seed, "--pid", server.pid,
                   "--json", report] + (["--quick"] if quick else [])
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise TimeUp(f"{server.name}: not done in {limit_s} s") from None
        if done.returncode:
            raise Failed(f"{server.name}: {(done.stderr.strip().splitlines() or ['the bench failed'])[-1]}")
        report = json.loads(report.read_text())["workloads"][0]
    failed = [lane["first_error"] for phase in report["phases"] for lane in phase["lanes"] if lane["errors"]]
    if failed:
        raise Failed(f"{server.name}: {failed[0]}")
    return report


def seed(turn):
    """Prompts that no earlier turn or run has had, and that both sides get alike."""
    return BEGUN + 2 * turn


BEGUN = time.time_ns() // 1_000_000


def figure(key, phase=0):
    def take(report):
        value = report["phases"][phase]["lanes"][0]
        for part in key.split("."):
            value = value and value[part]
        if value is None:
            raise Failed(f"the report has no {key}")
        return value
    return take


prefill = figure("prefill_tokens_per_s")
decode = figure("decode_tokens_per_s")


def resident(report):
    return report["phases"][0]["resident_peak_mib"]


WORKS = {
    "prefill_512": Work("prefill_512", "t/s", prefill),
    "prefill_2048": Work("prefill_2048", "t/s", prefill),
    "decode_1": Work("decode_1", "t/s", decode),
    "decode_1_depth_4096": Work("decode_1_depth_4096", "t/s", decode, context=8192),
    "decode_8": Work("decode_8", "t/s", decode, streams=8, context=512),
    "decode_16": Work("decode_16", "t/s", decode, streams=16, context=512),
    "decode_32": Work("decode_32", "t/s", decode, streams=32, context=512),
    "shared_prefix_16": Work("shared_prefix_16", "ms", figure("all_first_ms"), streams=16, context=2048,
                             more_is_better=False),
    "short_ttft_beside_long": Work("short_ttft_beside_long", "ms", figure("ttft_ms.p95", phase=1), streams=2,
                                   context=8192, more_is_better=False),
    "busy_core": BusyCore(),
    "resident_memory": Work("resident_8x2048", "MiB", resident, streams=8, context=2304, more_is_better=False),
    "start_to_ready": StartToReady(),
}
