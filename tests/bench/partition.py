# SPDX-License-Identifier: MIT
"""bench/partition: the best division of small graphs, known divisions of large ones, its output, and what
it says about nonsense.

  partition.py SOURCE_DIR
"""
import importlib.machinery, importlib.util, itertools, json, os, random, subprocess, sys, tempfile, unittest

PROGRAM = os.path.join(sys.argv[1], "bench", "partition")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("partition", PROGRAM)
partition = importlib.util.module_from_spec(importlib.util.spec_from_loader("partition", loader))
loader.exec_module(partition)


def stage(name, busy, links=(), placement="pool"):
    return {"name": name, "placement": placement, "busy_seconds_total": busy,
            "links": [{"to": to, "events_total": n} for to, n in links]}


def graph_of(*stages):
    return partition.Graph(partition.stages_of({"stages": list(stages)}))


def random_graph(n, density, chance):
    stages = []
    for i in range(n):
        links = [(str(k), chance.randrange(1, 50)) for k in range(n) if k != i and chance.random() < density]
        stages.append(stage(str(i), chance.choice((1, 2, chance.expovariate(1))), links))
    return graph_of(*stages)


def best_of_all(graph, cores, imbalance):
    """By looking at every division: (load of the busiest core or the bound, cut)."""
    mean = sum(graph.load) / sum(cores)
    all_parts = list(itertools.product(range(len(cores)), repeat=len(graph.load)))
    busiest = {part: partition.busiest(graph, part, cores) for part in all_parts}
    most = max(mean * (1 + imbalance), min(busiest.values())) * (1 + 1e-9)
    return most, min(graph.cut(part) for part in all_parts if busiest[part] <= most)


class Exact(unittest.TestCase):
    def test_beside_all_divisions(self):
        chance = random.Random(17)
        for cores in ([1, 1], [3, 1], [1, 1, 1], [2, 1, 1]):
            for n in range(len(cores), 8 if len(cores) == 2 else 7):
                for density in (.1, .3, 1):
                    graph = random_graph(n, density, chance)
                    part, certain = partition.divide(graph, cores, .1)
                    most, cut = best_of_all(graph, cores, .1)
                    self.assertTrue(certain)
                    self.assertLessEqual(partition.busiest(graph, part, cores), most)
                    self.assertAlmostEqual(graph.cut(part), cut)

    def test_kernighan_lin_beside_all_divisions(self):
        """It is no exact method: it must keep the loads, and be near the best on average."""
        chance, found, best = random.Random(3), 0, 0
        for _ in range(20):
            graph = random_graph(8, .3, chance)
            most, cut = best_of_all(graph, [1, 1], .1)
            part = partition.kernighan_lin(graph, [1, 1], lambda least: max(most, least))
            found += graph.cut(part)
            best += cut
            self.assertLessEqual(partition.busiest(graph, part, [1, 1]), most * (1 + 1e-6) * 1.3)
        self.assertLessEqual(found, best * 1.15)


def clusters(n, size):
    """`n` chains of `size` stages with many events, joined by links with few."""
    stages = []
    for c in range(n):
        for i in range(size):
            links = [(f"{c}.{i + 1}", 1000)] if i + 1 < size else [(f"{c + 1}.0", 3)] if c + 1 < n else []
            stages.append(stage(f"{c}.{i}", 1, links))
    random.Random(5).shuffle(stages)
    return graph_of(*stages)


class Known(unittest.TestCase):
    def divided(self, graph, cores):
        part, certain = partition.divide(graph, cores, .1)
        self.assertEqual(certain, len(graph.load) <= 20)
        return graph.cut(part)

    def test_clusters(self):
        self.assertEqual(self.divided(clusters(2, 10), [1, 1]), 3)
        self.assertEqual(self.divided(clusters(4, 5), [2, 2, 2, 2]), 9)
        self.assertEqual(self.divided(clusters(2, 12), [1, 1]), 3)
        self.assertEqual(self.divided(clusters(3, 8), [1, 1, 1]), 6)

    def test_unequal_cores(self):
        graph = graph_of(stage("a", 6, [("b", 10)]), stage("b", 1, [("c", 10)]), stage("c", 1))
        part, _ = partition.divide(graph, [3, 1], .1)
        self.assertEqual(part, [0, 1, 1])

    def test_heavy_stage(self):
        """Gordon's combiner: one stage has most of the work, so nothing keeps 10 %."""
        graph = graph_of(stage("a", 5, [("b", 10)]), stage("b", 83, [("c", 10)]), stage("c", 12))
        part, _ = partition.divide(graph, [4, 4], .1)
        self.assertEqual(part[0], part[2])
        self.assertNotEqual(part[0], part[1])

    def test_inline(self):
        graph = graph_of(stage("web", 9, [("r", 10)], "source"), stage("r", 1, [("a", 6), ("b", 4)], "inline"),
                         stage("a", 3, [("log", 6)]), stage("b", 3, [("log", 2)]),
                         stage("log", 4, [("c", 8)], "inline"), stage("c", 1))
        self.assertEqual(graph.names, ["a", "b", "c"])
        self.assertEqual(graph.load, [6, 4, 1])
        self.assertEqual(graph.edge, [{2: 6}, {2: 2}, {0: 6, 1: 2}])


class Program(unittest.TestCase):
    def run_on(self, text, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
            file.flush()
            return subprocess.run([sys.executable, PROGRAM, *options, file.name], capture_output=True,
                                  text=True, timeout=60, check=False)

    def refuses(self, said, text, *options):
        done = self.run_on(text, *options)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("partition: "), done.stderr)
        self.assertIn(said, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_output(self):
        done = self.run_on({"stages": [stage("web", 1, [("a", 9)], "source"), stage("a", 5, [("b", 9)]),
                                       stage("b", 5, [("c", 2)], "group"), stage("c", 10)]},
                           "--cores", "8", "--schedule", "srpt")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout, """\
# 3 stages, best possible: 18.2 % of the events between them change the group;
# the busiest cores have 0.0 % more than the mean load
groups:
  part1: { schedule: srpt, cores: 4 }  # 50.0 % of the load
  part2: { schedule: srpt, cores: 4 }  # 50.0 % of the load
stages:
  a: { group: part1 }  # 25.0 %
  b: { group: part1 }  # 25.0 %
  c: { group: part2 }  # 50.0 %
""")

    def test_says_imbalance(self):
        done = self.run_on({"stages": [stage("a", 1, [("b", 9)]), stage("b", 9)]}, "--cores", "1,1")
        self.assertIn("No division keeps 10 %: stage 'b' alone has 90 % of the load.", done.stdout)

    def test_nonsense(self):
        two = {"stages": [stage("a", 1, [("b", 9)]), stage("b", 9)]}
        self.refuses("Expecting", "{ nonsense")
        self.refuses("no list 'stages'", [])
        self.refuses("no list 'stages'", {"stages": 3})
        self.refuses("has no name", {"stages": [3]})
        self.refuses("two stages 'a'", {"stages": [stage("a", 1), stage("a", 1)]})
        self.refuses("'busy_seconds_total' is not a number", {"stages": [stage("a", -1)]})
        self.refuses("'busy_seconds_total' is not a number", {"stages": [stage("a", True)]})
        self.refuses("'events_total' is not a number", {"stages": [stage("a", 1, [("a", "x")])]})
        self.refuses("'c', which is no stage", {"stages": [stage("a", 1, [("c", 1)])]})
        self.refuses("no stage in a pool", {"stages": [stage("a", 1, (), "source")]})
        self.refuses("has done anything", {"stages": [stage("a", 0), stage("b", 0)]}, "--cores", "2")
        self.refuses("parts of 2 stages", two, "--cores", "3", "--parts", "3")
        self.refuses("cannot be divided equally", two, "--cores", "3")
        self.refuses("write a number", two, "--cores", "many")
        self.refuses("needs a core", two, "--cores", "2,0")
        self.refuses("from 0 on", two, "--cores", "2", "--imbalance", "-1")
        gone = subprocess.run([sys.executable, PROGRAM, "/nowhere"], capture_output=True, text=True, check=False)
        self.assertEqual(gone.returncode, 1)
        self.assertIn("/nowhere", gone.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
