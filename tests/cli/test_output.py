"""Results on standard output, everything else on standard error, 80 columns where nobody looks."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from lab.cli import output


def test_json_is_the_only_thing_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"outcome": "confirmed", "gave_up_s": None, "name": "Zürich"})

    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"outcome": "confirmed", "gave_up_s": None, "name": "Zürich"}
    assert "Zürich" in shown.out
    assert shown.err == ""


def test_a_figure_that_is_not_finite_is_refused_before_anything_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.print_json({"gave_up_s": float("inf")})

    assert capsys.readouterr().out == ""


def test_json_does_not_import_rich() -> None:
    program = "import sys; from lab.cli import output; output.print_json({}); sys.exit('rich' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False).returncode == 0


def test_an_address_in_brackets_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_out("[2001:db8::1]:80 [bold]")
    output.console.print("[2001:db8::2]:80 :smile:")

    shown = capsys.readouterr()
    assert shown.out == "[2001:db8::1]:80 [bold]\n"
    assert shown.err == "[2001:db8::2]:80 :smile:\n"


def test_a_wide_table_fits_eighty_columns_whatever_the_terminal_beside_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    table = Table("name", "seen")
    table.add_row("legacy tables", "word " * 60)

    output.print_out(table)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("columns", "width"), [("200", 200), ("40", 80), ("", 80), ("many", 80)])
def test_what_gains_by_columns_has_as_many_as_it_is_told_of(
    columns: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    output.print_out("x" * 300, wide=True)

    assert max(map(len, capsys.readouterr().out.splitlines())) == width


@pytest.mark.parametrize("call", ["print_json({'many': ['x'] * 10})", "print_out('x' * 10)"])
def test_a_reader_that_went_away_ends_the_command_quietly(call: str, tmp_path: Path) -> None:
    program = f"from lab.cli import output\nfor _ in range(100000): output.{call}"
    complaints = tmp_path / "stderr"
    with complaints.open("w") as stderr:
        writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=stderr)
        assert writer.stdout is not None
        writer.stdout.read(1)
        writer.stdout.close()
        code = writer.wait(timeout=30)

    assert code == output.BROKEN_PIPE
    assert complaints.read_text() == ""


def test_the_console_follows_a_standard_error_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = io.StringIO()
    monkeypatch.setattr(sys, "stderr", replaced)

    output.console.print("progress")

    assert replaced.getvalue() == "progress\n"


def test_what_a_long_line_goes_on_with_is_indented_and_its_words_are_whole() -> None:
    lines = output.hanging("why        " + "a-word-of-its-own " * 9, 11).splitlines()

    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert all(line.startswith(" " * 11 + "a-word") for line in lines[1:])
    assert output.hanging("   0.306  short", 10) == "   0.306  short"
