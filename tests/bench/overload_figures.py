# SPDX-License-Identifier: MIT
"""Tests bench/overload_figures.py with made-up run files.

  overload_figures.py SOURCE_DIR
"""
import os, sys, unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv[1], "bench"))
import overload_figures as figures


def cls(name, offered, ok, buckets=None, **outcomes):
    latency = {o: {"buckets": b} for o, b in (buckets or {}).items()}
    return {"name": name, "offered": offered, "outcomes": {"ok": ok, "degraded": 0, "shed": 0, "timeout": 0, "error": 0, **outcomes}, "latency": latency}


def stage(name, busy, completed, failed=0, threads=1):
    return {"name": name, "busy_seconds_total": busy, "threads": {"target": threads}, "classes": [{"completed_total": completed, "failed_total": failed}]}


class Figures(unittest.TestCase):
    def test_bucket(self):
        self.assertAlmostEqual(figures.bucket_s(0), 1024e-9)
        self.assertAlmostEqual(figures.bucket_s(64), 2048e-9)  # bucket 64 ends at 2^11 ns

    def test_quantile_counts_those_who_gave_up(self):
        phases = [{"classes": [cls("a", 100, 98, {"ok": [[100, 98]], "timeout": [[200, 2]]}, timeout=2)]}]
        self.assertAlmostEqual(figures.quantile(phases, 0.98), figures.bucket_s(100))
        self.assertAlmostEqual(figures.quantile(phases, 0.99), figures.bucket_s(200))
        self.assertIsNone(figures.quantile([], 0.99))

    def test_classes_and_refused(self):
        phases = [{"classes": [cls("a", 10, 9, shed=1), cls("b", 10, 0, degraded=2, shed=8)]}] * 2
        self.assertEqual(figures.classes(phases), [{"name": "a", "offered": 20, "good": 18}, {"name": "b", "offered": 20, "good": 4}])
        self.assertAlmostEqual(figures.refused(phases), 18 / 40)

    def test_series(self):
        phases = [{"for_s": 0.1, "took_s": 0.1, "classes": [cls("a", 20, 10), cls("b", 5, 5)]}, {"for_s": 0.1, "took_s": 0, "classes": []}]
        self.assertEqual(figures.series(phases, 100), {"bin_s": 0.1, "offered": [2.5], "good": [1.5]})
        self.assertEqual(figures.series(phases, 100, ["b"]), {"bin_s": 0.1, "offered": [0.5], "good": [0.5]})

    def test_jain(self):
        self.assertAlmostEqual(figures.jain([3, 3, 3]), 1)
        self.assertAlmostEqual(figures.jain([5, 0, 0, 0]), 0.25)
        self.assertEqual(figures.jain([0, 0]), 0)

    def test_wasted(self):
        start = {"stages": [stage("front", 1, 100), stage("back", 2, 50)]}
        end = {"stages": [stage("front", 3, 290, 10), stage("back", 4, 150)]}
        use = figures.stage_use(start, end)
        self.assertEqual(use, {"front": (2, 200), "back": (2, 100)})
        # Of the 200 requests that passed the front, 100 were answered; so were all 100 at the back.
        self.assertAlmostEqual(figures.wasted(use, {"front": 100, "back": 100}), 0.25)
        self.assertEqual(figures.wasted(use, {"front": 500}), 0)

    def test_refusal_cpu(self):
        self.assertAlmostEqual(figures.refusal_cpu(1.05, 500, 10000, 0), 1e-4)
        self.assertIsNone(figures.refusal_cpu(1, 500, 99, 0))
        self.assertIsNone(figures.refusal_cpu(1, 500, 1000, 21))

    def test_late(self):
        phase = lambda n, p50, p99: {"lag": {"count": n, "p50_s": p50, "p99_s": p99}}
        calm = [phase(20, 1e-5, 1e-4)] * 99
        self.assertFalse(figures.is_late(calm + [phase(20, 1e-5, 5e-3)]))
        self.assertTrue(figures.is_late(calm + [phase(30, 2e-3, 5e-3)]))
        self.assertTrue(figures.is_late([phase(20, 1e-5, 5e-3)] * 3))
        self.assertTrue(figures.is_late([phase(5000, 1e-5, 2e-3)]))

    def test_threads(self):
        each = [{"at_s": 1.0, "uptime_seconds": 11.0, "stages": [stage("disk", 0, 0, threads=2)]},
                {"at_s": 9.0, "uptime_seconds": 19.0, "stages": [stage("disk", 0, 0, threads=8)]}]
        move = lambda at, a, b, name="disk", action="grow": {"uptime_seconds": at, "from": a, "to": b, "stage": name, "action": action}
        newest_first = [move(14, 4, 8), move(13.5, 1, 9, "other"), move(13, 3, 4), move(12.5, 2, 3, action="batch"), move(9, 2, 3)]
        self.assertEqual(figures.threads_at("disk", {"each": each, "decisions": newest_first}), [[0.0, 3], [3.0, 4], [4.0, 8], [9.0, 8]])
        self.assertEqual(figures.threads_at("disk", {"each": [], "decisions": []}), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
