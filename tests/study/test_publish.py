import json
from pathlib import Path

from lab.study.judgement import judge_row
from lab.study.publish import machine, publish, study_json
from lab.study.scenarios import find
from tests.study.streams import br1

ROW = judge_row(find("BR1"), [br1().session("BR1", k) for k in range(4)], real=False)


def test_a_study_leaves_its_page_its_table_and_its_figures(tmp_path: Path) -> None:
    publish(tmp_path, [ROW], machine(12.5, "netns"))

    assert "| BR1 | 4 |" in (tmp_path / "FINDINGS.md").read_text()
    assert json.loads((tmp_path / "table.json").read_text())["rows"][0]["scenario"] == "BR1"
    page = (tmp_path / "FINDINGS.md").read_text()
    assert all((tmp_path / "figures" / name).exists() for name in ("lockout.svg", "recovery.svg") if name in page)


def test_scripts_find_the_rows_and_what_is_not_known_is_null() -> None:
    shown = json.loads(json.dumps(study_json([ROW]), allow_nan=False))

    assert [row["scenario"] for row in shown["rows"]] == ["BR1"]
    assert shown["parallel_saves_s"] is None


def test_a_figure_that_is_not_there_is_not_on_the_page(tmp_path: Path) -> None:
    publish(tmp_path, [judge_row(find("BR1"), [], real=False)], machine(1.0, "netns"))

    assert "figures/" not in (tmp_path / "FINDINGS.md").read_text()
