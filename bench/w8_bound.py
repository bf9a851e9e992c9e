#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The best possible result for W8's slow stage. Simulates a station with two threads, exponential
service times of 50 ms, an objective of 100 ms, and a queue for K events, served oldest first or newest
first, and prints goodput and wasted work.

  bench/w8_bound.py [--arrivals N]

Wasted work is the time of services that end too late. Services that alone take longer than the
objective are not counted, since no policy can predict them. Without a queue nothing is wasted, but
threads are idle. Among the orders with a queue, newest first wastes the least.
"""
import argparse
import heapq
import random

SERVICE_MS, OBJECTIVE_MS, THREADS = 50.0, 100.0, 2


class Station:
    def __init__(self, chance):
        self.chance, self.free = chance, [0.0] * THREADS
        self.good = self.busy = self.wasted = 0.0

    def serve(self, at, came):
        took = self.chance.expovariate(1 / SERVICE_MS)
        heapq.heapreplace(self.free, at + took)
        self.busy += took
        if at + took - came <= OBJECTIVE_MS:
            self.good += 1
        elif took <= OBJECTIVE_MS:
            self.wasted += took


def run(load, room, newest, arrivals):
    chance = random.Random(1)
    station, waiting, now = Station(chance), [], 0.0
    for _ in range(arrivals):
        now += chance.expovariate(load * THREADS / SERVICE_MS)
        while waiting and station.free[0] <= now:
            station.serve(max(station.free[0], waiting[-1 if newest else 0]), waiting.pop(-1 if newest else 0))
        if not waiting and station.free[0] <= now:
            station.serve(now, now)
        elif len(waiting) < room:
            waiting.append(now)
        elif newest and room:
            waiting.pop(0)
            waiting.append(now)
    return station.good / now * SERVICE_MS / THREADS, station.wasted / station.busy


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    ap.add_argument("--arrivals", type=int, default=300000)
    opt = ap.parse_args()
    print("| offered | queue limit | order | goodput / capacity | wasted |\n|---|---|---|---|---|")
    for load in (1.5, 2.8, 5):
        for room, newest in ((0, False), (1, False), (1, True), (2, False), (2, True)):
            good, wasted = run(load, room, newest, opt.arrivals)
            print(f"| {load}x | {room} | {'newest' if newest else 'first come'} | {good:.3f} | {wasted:.1%} |")


if __name__ == "__main__":
    main()
