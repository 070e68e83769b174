"""The record's sentences, the HTML report, and how it comes out in a real browser."""

import html
import html.parser
import json
import shutil
import subprocess

import pytest
from profiling_example import LEVELS, evidence, example, sampled

from utils.present import report
from utils.present.outcome import CannotTell
from utils.present.report_svg import Point, Series, distributions, roofline
from utils.timing import result, witness
from utils.timing.kernels import table
from utils.timing.variants import MODES, Variant


class TestResult:
    def test_the_headline_states_both_baselines_and_the_limit(self):
        built = result.build(evidence())
        assert built.verdict == "FASTER"
        assert built.met
        assert built.headline[0].startswith("FASTER: 3.69x faster than torch.compile (time ratio 0.271")
        assert built.headline[0].endswith("target 0.95 met")
        best = (
            "FASTER: 1.15x faster than torch.compile (TF32 allowed), the best baseline at equal precision (time ratio"
        )
        assert built.headline[1].startswith(best)
        assert built.headline[2] == "41 % of the speed of light: 350.5 µs at tf32, set by tf32 matrix arithmetic"

    def test_a_solution_that_only_wins_by_its_precision_is_told_so(self):
        built = result.build(evidence(sampled=sampled({**LEVELS, "solution": 0.97})))
        assert built.verdict == "FASTER"
        assert "SAME: to one per cent as fast as torch.compile (TF32 allowed)" in built.headline[1]

    def test_a_slower_solution_misses_the_target(self):
        built = result.build(evidence(sampled=sampled({**LEVELS, "solution": 3.3})))
        assert (built.verdict, built.target, built.met) == ("SLOWER", "missed", False)
        assert "target 0.95 not met" in built.headline[0]

    def test_without_the_official_baseline_there_is_no_verdict(self):
        taken = sampled({name: level for name, level in LEVELS.items() if name != "compile"})
        taken.failed["compile"] = "RuntimeError: nvrtc is missing"
        built = result.build(evidence(sampled=taken))
        assert built.verdict == "UNSURE"
        assert not built.met
        assert "nvrtc is missing" in built.headline[0]

    def test_a_baseline_that_failed_is_a_row_with_its_reason(self):
        rows = {row["key"]: row for row in result.build(evidence()).results["baselines"]}
        assert rows["max-autotune/tf32"]["ratio"] is None
        assert rows["max-autotune/tf32"]["error"] == "RuntimeError: out of shared memory"

    def test_samples_that_are_no_durations_are_counted_in_a_warning(self):
        taken = sampled()
        turn = taken.turns["solution"][0]
        taken.turns["solution"][0] = result.Turn(
            0, (0.0, -1.0, *turn.samples), turn.lead_in, turn.wall, turn.start, turn.end
        )
        assert any("2 samples were zero" in line for line in result.build(evidence(sampled=taken)).warnings)

    def test_neighbours_throttling_and_recompilation_are_warned_of(self):
        changed = evidence(neighbours=[{"pid": 7, "mib": 10, "visible": True}])
        changed.sampled.throttled_kept = 3
        changed.built["compile"].recompiled = 2
        changed.built["compile"].graph_breaks = 4
        changed.built["eager"].difference = 0.2
        text = " ".join(result.build(changed).warnings)
        for part in (
            "pid 7",
            "3 throttled turns",
            "recompiled 2 time(s)",
            "breaks the graph 4 time(s)",
            "differs from eager by 20.0 %",
        ):
            assert part in text

    def test_foreign_kernels_are_pointed_out(self):
        assert (
            "3 % of the device time is in kernels that are not the solution's own (torch)"
            in result.build(evidence()).warnings
        )
        libraries = table([{"us": 1.0, "name": "nvjet_tst_128"}, {"us": 1.0, "name": "Memset (Device)"}])
        assert any("all come from libraries" in line for line in result.build(evidence(kernels=libraries)).warnings)
        own = table([{"us": 1.0, "name": "my_kernel"}])
        assert result.build(evidence(kernels=own)).warnings == []

    def test_faster_than_light_is_pointed_out_and_not_failed(self):
        built = result.build(evidence(sampled=sampled({**LEVELS, "solution": 0.2})))
        assert built.verdict == "FASTER"
        assert any("cheaper way" in line for line in built.warnings)

    def test_the_record_is_strict_json_with_every_sample(self):
        record = example()
        text = json.dumps(record, allow_nan=False)
        back = json.loads(text)
        assert sum(len(turn["samples"]) for turn in back["results"]["solution"]["turns"]) == 300


class Balanced(html.parser.HTMLParser):
    """Collects tags, text and attributes; fails on tags that are not closed in order."""

    void = frozenset({"meta", "link", "br", "img", "input", "rect", "line", "circle"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.values = [], [], []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values.extend((tag, name, value) for name, value in attrs)
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.values.extend((tag, name, value) for name, value in attrs)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def parsed(page):
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    return reader


class TestPage:
    def test_everything_is_on_the_page_and_nothing_is_fetched(self):
        page = parsed(report.render(example()))
        for part in (
            "FASTER",
            "torch.compile (TF32 allowed)",
            "layernorm_kernel<256>",
            "Speed of light",
            "NVIDIA H200",
            "out of shared memory",
        ):
            assert part in page.words
        assert page.tags.count("svg") == 2
        assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
        assert not [item for item in page.values if item[1] in ("src", "href")]
        assert "url(" not in report.render(example())

    def test_names_from_the_solution_cannot_inject_markup(self):
        hostile = table([{"us": 1.0, "name": "<script>alert(1)</script>"}])
        page = parsed(report.render(example(kernels=hostile)))
        assert "script" not in page.tags
        assert "<script>alert" in page.words

    @pytest.mark.parametrize("changes", [
        {"work": "the work could not be counted", "rates": None},
        {"rates": None},
        {"kernels": "no CUDA kernels were recorded"},
        {"extras": {}, "witness": None, "gpu": {"available": False, "why": "no NVML"}},
        {"ncu": {"kernels": [{"name": "k", "ms": 0.1, "metrics": {}, "sentences": ["bound by memory"]}], "why": None}},
        {"ncu": {"kernels": [], "why": "not installed"}},
        {"precision_class": None, "precision": "default"},
    ])  # fmt: skip
    def test_whatever_is_missing_the_page_stands(self, changes):
        parsed(report.render(example(**changes)))

    def test_a_record_without_times_shows_its_reasons(self):
        record = {**example(), "verdict": "FAIL", "reasons": ["out[0]: 3 of 8 elements differ"], "results": {}}
        assert "3 of 8 elements differ" in parsed(report.render(record)).words

    def test_another_kind_of_record_is_refused(self):
        with pytest.raises(CannotTell, match="workbench/profiling/1"):
            report.render({"schema": "workbench/verification/1"})

    def test_from_a_file_to_a_page(self, tmp_path):
        (tmp_path / "r.json").write_text(json.dumps(example()))
        assert report.main([str(tmp_path / "r.json"), str(tmp_path / "r.html")]) == 0
        assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")

    @pytest.mark.parametrize("text, said", [(None, "cannot read"), ("{", "is not JSON"), ("[]", "holds no record")])
    def test_a_bad_file_is_a_sentence(self, tmp_path, text, said):
        if text is not None:
            (tmp_path / "r.json").write_text(text)
        with pytest.raises(CannotTell, match=said):
            report.main([str(tmp_path / "r.json"), str(tmp_path / "r.html")])

    def test_an_unwritable_place_is_a_sentence(self, tmp_path):
        with pytest.raises(CannotTell, match="cannot write the report"):
            report.write(tmp_path / "no" / "folder.html", example())


class TestDrawings:
    def test_histograms_count_every_sample_and_mark_the_median(self):
        drawn = distributions(
            [Series("a & b", "solution", [1.0, 1.01, 1.02, 1.5], 1.01), Series("c", "other", [2.0] * 9, 2.0)]
        )
        page = parsed(drawn)
        assert "a &amp; b" in drawn
        assert "1.01 ms" in page.words
        assert page.tags.count("rect") >= 4

    @pytest.mark.parametrize("samples", [[1.0], [1.0] * 5, [1e-6, 1e6], [0.5, 0.5000001]])
    def test_odd_samples_draw_finite_coordinates(self, samples):
        drawn = distributions([Series("x", "solution", samples, sorted(samples)[len(samples) // 2])])
        assert "nan" not in drawn
        assert "inf" not in drawn

    def test_nothing_to_draw_is_nothing(self):
        assert distributions([]) == ""
        assert roofline(4e12, [("fp32", 5e13)], []) == ""
        assert roofline(0.0, [("fp32", 5e13)], [Point("a", "solution", 1.0, 1.0)]) == ""

    @pytest.mark.parametrize("intensity", [1e-3, 0.25, 12.0, 1e5])
    def test_every_point_lies_inside_the_roofline(self, intensity):
        point = Point("solution", "solution", intensity, min(4e12 * intensity, 5e13) * 0.7)
        page = parsed(roofline(4e12, [("fp32", 5e13), ("bf16", 8e14)], [point]))
        (x,) = [float(v) for tag, name, v in page.values if tag == "circle" and name == "cx"]
        (y,) = [float(v) for tag, name, v in page.values if tag == "circle" and name == "cy"]
        assert 74 <= x <= 706
        assert 14 <= y <= 334


BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed to open the report with")
@pytest.mark.parametrize("width, printed", [(500, False), (1200, False), (720, True)])
def test_in_a_browser_the_page_fits_and_draws(tmp_path, width, printed):
    """Opened as a file in headless Chromium: no overflow at this width, both drawings laid out, labels inside them; on
    paper (the printable width of A4) no table that would have to be scrolled."""
    page = tmp_path / "report.html"
    probe = """<script>addEventListener("load", () => {
      const root = document.documentElement, drawn = [...document.querySelectorAll("svg")];
      const seen = {overflow: root.scrollWidth - root.clientWidth,
        svgs: drawn.map(s => { const b = s.getBoundingClientRect(); return [b.width, b.height]; }),
        outside: drawn.flatMap(s => { const b = s.getBoundingClientRect();
          return [...s.querySelectorAll("text")].filter(t => { const c = t.getBoundingClientRect();
            return c.left < b.left - 2 || c.right > b.right + 2; }).map(t => t.textContent); }),
        cut: [...document.querySelectorAll(".scroll")].filter(t => t.scrollWidth > t.clientWidth + 1).length,
        title: document.title};
      const out = document.createElement("pre");
      out.id = "probe"; out.textContent = JSON.stringify(seen); document.body.append(out);
    });</script>"""
    text = report.render(example(variants=[Variant(mode, p) for mode in MODES for p in ("default", "tf32")]))
    if printed:
        assert "@media print" in text
        text = text.replace("@media print", "@media all")
    page.write_text(text.replace("</head>", probe + "</head>"))
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},2000",
    ]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert '<pre id="probe">' in done.stdout, done.stderr[-2000:]
    seen = json.loads(
        done.stdout.partition('<pre id="probe">')[2]
        .partition("</pre>")[0]
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
    )
    assert seen["overflow"] <= 0
    assert len(seen["svgs"]) == 2
    assert all(width * 0.6 <= size[0] <= width and size[1] > 100 for size in seen["svgs"])
    assert seen["outside"] == []
    assert not printed or seen["cut"] == 0
    assert seen["title"].startswith("FASTER")


def test_a_refused_result_shows_by_how_much():
    refused = witness.judge([(1.0, [1.0] * 100)], 1.0)
    assert not refused.agrees
    assert "8.0000 ms per call" in refused.sentence
