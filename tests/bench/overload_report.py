# SPDX-License-Identifier: MIT
"""The overload report of made-up rows: its tables show the right numbers, drawings are complete, texts
are escaped.

  overload_report.py PROGRAM ROWS
"""
import html.parser, os, re, subprocess, sys, tempfile, unittest

PROGRAM, ROWS = sys.argv[1:3]
VOID = {"meta", "link"}  # void elements: they have no end tag
DRAWN = {"svg", "g", "path", "line", "text", "rect", "use", "circle", "title", "desc", "defs", "pattern"}


class Page(html.parser.HTMLParser):
    """Tables as lists of rows of texts, keyed by caption; and the open elements of drawings."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.rows, self.open, self.figures, self.paths, self.in_caption = {}, None, [], 0, [], False
        self.feed(text)
        self.close()

    def handle_startendtag(self, tag, attrs):
        self.look(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self.look(tag, attrs)
        if tag in DRAWN and (self.open or tag == "svg"):
            self.open.append(tag)
        if tag == "caption":
            self.in_caption, self.caption = True, ""
        elif tag == "thead":
            self.in_caption, self.rows = False, self.tables.setdefault(self.caption, [])
            while self.rows:  # the caption appeared before
                self.caption += "+"
                self.rows = self.tables.setdefault(self.caption, [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag in DRAWN and self.open:
            assert self.open[-1] == tag, (self.open, tag)
            self.open.pop()
        elif tag == "table":
            self.rows = None

    def handle_data(self, data):
        if self.in_caption:
            self.caption += data
        elif self.rows and self.rows[-1] and not self.open:
            self.rows[-1][-1] += data.strip("\n").replace("\xa0", " ")

    def look(self, tag, attrs):
        self.figures += tag == "figure"
        if tag == "path":
            self.paths.append(dict(attrs).get("d", ""))
        for _, value in attrs:
            assert not re.search(r"\b(nan|inf)\b", value or ""), value


def report(*files):
    return subprocess.run([PROGRAM, *files], capture_output=True, text=True, timeout=60)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = report(ROWS).stdout
        cls.page = Page(cls.text)

    def table(self, caption, row):
        return next(r for r in self.page.tables[caption] if r[0] == row)

    def test_targets(self):
        of = lambda name: self.table("Targets of the evaluation protocol", name)
        self.assertEqual(of("goodput at 2 to 10 times the capacity"), ["goodput at 2 to 10 times the capacity", "≥ 0.95", "0.97", "met", "W2 at 2x, 3 rounds", "0.31"])
        self.assertEqual(of("p99 of admitted requests / objective")[2:4], ["0.90", "met"])
        self.assertEqual(of("spike to 10x: time to recover")[2:], ["0", "met", "W7 at 10x, 1 round", "never"])
        self.assertEqual(of("CPU time per refusal, with request and response")[2:4], ["42 µs", "missed by 15 µs"])
        self.assertEqual(of("Jain's index of equal users")[2:4], ["–", "not measured"])
        self.assertTrue("weir meets 6 of the 7 targets" in self.text and "1 void run<" in self.text)

    def test_goodput_by_load(self):
        self.assertEqual(self.table("Goodput over capacity by load", "weir"), ["weir", "0.50", "0.97 0.95…0.99", "0.01 1 void"])
        self.assertEqual(self.table("Goodput over capacity by load", "<b>none</b>"), ["<b>none</b>", "0.50", "0.31 0.29…0.33", "–"])

    def test_classes(self):
        # The highest load that counts: the run at 10x is void.
        self.assertEqual(self.page.tables["Success by class at the highest load"][0], ["success by class", "c0 at 2x", "c1 at 2x"])
        self.assertEqual(self.table("Success by class at the highest load", "weir"), ["weir", "100.00 %", "43.9 %"])

    def test_virtual_time_is_apart(self):
        self.assertEqual(self.table("Targets of the evaluation protocol+", "pool: time until the goodput has recovered")[2:4], ["2 s", "met"])
        self.assertEqual(self.table("Targets of the evaluation protocol+", "goodput at 2 to 10 times the capacity")[3], "not measured")

    def test_drawings(self):
        self.assertEqual(self.page.open, [])
        self.assertGreaterEqual(self.page.figures, 6)  # W2: 2, W7: 1, W5: 4
        lines = [d for d in self.page.paths if d.startswith("M") and "L" in d]
        self.assertGreater(len(lines), 8)
        for d in lines:
            self.assertRegex(d, r"^[MLHZ0-9 .\-]+$")

    def test_escaped_and_alone(self):
        self.assertFalse("<b>none" in self.text)
        self.assertFalse("<work>" in self.text)
        self.assertFalse("<script" in self.text)
        self.assertIsNone(re.search(r"https?://", self.text))

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as d:
            bad = os.path.join(d, "bad.jsonl")
            with open(bad, "w") as f:
                f.write('{"row":"run"}\n')
            got = report(bad)
            self.assertEqual((got.returncode, got.stdout), (2, ""))
            self.assertIn("bad.jsonl:1", got.stderr)
            self.assertEqual(report().returncode, 2)
            self.assertEqual(report("-o", os.path.join(d, "no", "where"), ROWS).returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
