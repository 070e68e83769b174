"""The history of a workspace: what is kept, what is shown, and files edited by hand."""

import json

import pytest

from utils import history
from utils.present.outcome import CannotTell
from utils.present.record import envelope


def profiled(ms, ratio, verdict="FASTER", code=0):
    results = {
        "solution": {"summary": {"median": ms}},
        "baselines": [
            {"official": False, "summary": {"median": 9.0}, "ratio": {"value": ms / 9.0}},
            {"official": True, "summary": {"median": ms / ratio}, "ratio": {"value": ratio}},
        ],
    }
    return envelope(
        "profiling",
        verdict,
        code,
        ["one reason", "two", "three", "four"],
        environment={"digests": {"solution": "ab"}},
        results=results,
    )


def test_an_entry_keeps_verdict_times_digests_and_the_expectation(tmp_path):
    assert history.append(tmp_path, profiled(0.8, 0.4), "vector loads should help") is None
    history.append(tmp_path, envelope("verification", "FAIL", 1, ["wrong"]))
    (first, second), bad = history.read(tmp_path)
    assert bad == 0
    assert (first["command"], first["verdict"], first["ms"], first["ratio"], first["official_ms"]) == (
        "profiling",
        "FASTER",
        0.8,
        0.4,
        2.0,
    )
    assert first["note"] == "vector loads should help"
    assert first["digests"] == {"solution": "ab"}
    assert first["reasons"] == ["one reason", "two", "three"]
    assert (second["command"], second["verdict"], second["ms"]) == ("verification", "FAIL", None)


def test_refused_times_are_no_step_on_the_way_down(tmp_path):
    history.append(tmp_path, profiled(0.001, 0.001, verdict="REFUSED", code=1))
    (entry,), _ = history.read(tmp_path)
    assert entry["verdict"] == "REFUSED"
    assert (entry["ms"], entry["ratio"]) == (None, None)


def test_each_iteration_is_compared_with_the_best_before(tmp_path):
    for ms in (1.0, 0.5, 0.6, 0.499):
        history.append(tmp_path, profiled(ms, ms))
    changes = [row[6] for row in history.rows(history.read(tmp_path)[0])]
    assert changes == ["", ("-50.0 %", "pass"), ("+20.0 %", "fail"), ("-0.2 %", "note")]


def test_the_way_down_is_plotted_from_the_baseline(tmp_path):
    for ms in (4.0, 1.0, 2.0):
        history.append(tmp_path, profiled(ms, ms / 8.0))
    lines = history.plot(history.read(tmp_path)[0])
    assert lines[0].split()[:3] == ["torch.compile", "8", "ms"]
    lengths = [line.count("█") for line in lines]
    assert lengths[0] > lengths[1] > lengths[3] > lengths[2] > 0
    assert [line.endswith("best so far") for line in lines] == [False, True, True, False]


def test_one_profiling_is_no_way_down(tmp_path):
    history.append(tmp_path, profiled(1.0, 0.5))
    assert history.plot(history.read(tmp_path)[0]) == []


@pytest.mark.parametrize("value", ["x", None, -1, 0, float("nan"), True, [1], 1e400])
def test_values_edited_by_hand_do_no_harm(value):
    entries = [{"ms": value, "ratio": value, "official_ms": value, "verdict": 5}, {"ms": 1.0}, {"ms": 2.0}]
    assert len(history.rows(entries)) == 3
    assert len(history.plot(entries)) == 2


def test_lines_that_are_no_entries_are_counted(tmp_path, capsys):
    history.append(tmp_path, profiled(1.0, 0.5))
    with open(tmp_path / history.FILE, "a") as file:
        file.write("{broken\n\n[1]\n")
    assert history.read(tmp_path)[1] == 2
    assert history.main(["--workspace", str(tmp_path)]) == 0
    assert "2 line(s)" in capsys.readouterr().out


def test_no_history_says_how_to_start_one(tmp_path):
    with pytest.raises(CannotTell, match="there is no history"):
        history.main(["--workspace", str(tmp_path)])


def test_last_must_be_a_number_of_entries(tmp_path):
    with pytest.raises(CannotTell, match="--last"):
        history.main(["--workspace", str(tmp_path), "--last", "0"])


def test_a_place_that_cannot_be_written_loses_no_verdict(tmp_path):
    said = history.append(tmp_path / "missing", profiled(1.0, 0.5))
    assert "could not be written" in said


def test_the_file_is_not_written_through_a_link(tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("precious\n")
    (tmp_path / history.FILE).symlink_to(target)
    assert history.append(tmp_path, profiled(1.0, 0.5)) is not None
    assert target.read_text() == "precious\n"


def test_the_record_holds_the_entries(tmp_path):
    history.append(tmp_path, profiled(1.0, 0.5), "first")
    history.main(["--workspace", str(tmp_path), "--json", str(tmp_path / "h.json")])
    written = json.loads((tmp_path / "h.json").read_text())
    assert written["schema"] == "workbench/history/1"
    assert written["results"]["entries"][0]["note"] == "first"
