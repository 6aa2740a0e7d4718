"""``lab predict`` keeps to its contract: keys, never as null, words for people, errors with a fix."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lab.cli.predict import predict
from lab.core.errors import UsageError

CONTRACT_KEYS = ["bound_s", "give_up_s", "window_s", "cause", "copy_times_s"]


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(predict)
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments: str) -> dict[str, Any]:
    found = json.loads(run("--json", *arguments))
    assert isinstance(found, dict)
    return found


def test_json_starts_with_the_keys_of_the_contract() -> None:
    assert list(as_json())[:5] == CONTRACT_KEYS


def test_defaults_are_a_busy_connection_of_a_quarter_of_an_hour() -> None:
    found = as_json()
    assert found["bound_s"] == 924.6
    assert found["window_s"][0] <= 938.463 <= found["window_s"][1]
    assert found["cause"] == "retries2"
    assert len(found["copy_times_s"]) == 16


def test_the_nominal_instant_lies_in_the_window() -> None:
    found = as_json("--retries2", "5", "--rto", "300ms")
    assert found["window_s"][0] <= found["give_up_s"] <= found["window_s"][1]


def test_never_is_null() -> None:
    found = as_json("--idle")
    assert (found["bound_s"], found["give_up_s"], found["window_s"]) == (None, None, None)
    assert found["cause"] == "none"
    assert found["copy_times_s"] == []


@pytest.mark.parametrize(
    ("arguments", "cause", "measured_s"),
    [
        (["--retries2", "3"], "retries2", 6.709),
        (["--rto-max", "1s"], "retries2", 14.988),
        (["--user-timeout", "20s"], "user-timeout", 20.435),
        (["--idle", "--keepalive", "10/5/3"], "keepalive", 25.497),
        (["--idle", "--keepalive", "10/5/3", "--user-timeout", "12"], "keepalive", 15.252),
        (["--state", "syn-sent", "--syn-retries", "1"], "syn-retries", 3.076),
        (["--state", "syn-sent", "--syn-linear", "0"], "syn-retries", 130.370),
        (["--state", "syn-received", "--syn-retries", "2"], "synack-retries", 7.195),
        (["--state", "last-ack", "--rto-max", "1", "--orphan-retries", "8"], "orphan-retries", 7.822),
        (["--state", "fin-wait-1", "--orphan-retries", "2"], "orphan-retries", 3.347),
        (["--state", "fin-wait-2", "--fin-timeout", "3"], "fin-timeout", 3.100),
        (["--state", "zero-window", "--retries2", "3", "--rto", "212ms", "--backoff", "1"], "probes", 4.756),
        (["--state", "zero-window", "--peer-alive", "--rto", "212ms", "--user-timeout", "20"], "user-timeout", 20.408),
        (["--profile", "study-server"], "retries2", 145.628),
    ],
)
def test_every_option_reaches_the_model(arguments: list[str], cause: str, measured_s: float) -> None:
    found = as_json(*arguments)
    assert found["cause"] == cause
    assert found["window_s"][0] <= measured_s <= found["window_s"][1]


@pytest.mark.parametrize("arguments", [["--idle"], ["--idle", "--keepalive", "//"], [], ["--user-timeout", "3h"]])
def test_output_for_people_fits_80_columns(arguments: list[str]) -> None:
    text = run(*arguments)
    assert max(len(line) for line in text.splitlines()) < 80
    assert len(text.splitlines()) < 40


def test_people_see_the_real_world_figure_beside_a_compressed_one() -> None:
    assert "With Linux's defaults: 15 m 39 s" in run("--profile", "fast")


def test_people_see_that_nothing_ends_an_idle_connection() -> None:
    assert run("--idle").startswith("Never: ")


def test_a_profile_file_is_read(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('[sysctls]\ntcp_retries2 = 3\n"net.ipv4.tcp_rto_max_ms" = 5000\n', encoding="utf-8")
    assert as_json("--profile", str(profile))["bound_s"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--profile", "fats"], "did you mean fast?"),
        (["--profile", "missing.toml"], "The profile missing.toml cannot be read"),
        (["--state", "closed"], "syn-sent"),
        (["--rto", "soon"], "500ms"),
        (["--rto", "0"], "above zero"),
        (["--rto-max", "500ms"], "1 s to 120 s"),
        (["--keepalive", "10/5"], "10/5/3"),
        (["--keepalive", "10/5/0"], "1 to 127"),
        (["--keepalive", "0.1/5/3"], "1 to 32767"),
        (["--user-timeout", "25d"], "24.8 days"),
        (["--user-timeout", "24d", "--rto-max", "1"], "20000 copies"),
    ],
)
def test_a_wrong_option_says_what_is_expected(arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*arguments)
    assert said in str(caught.value)


def test_a_profile_that_is_not_toml_says_so(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text("tcp_retries2: 3\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is no TOML"):
        run("--profile", str(profile))


MODEL = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(--[^`]+)`[^|]* \| ([\d.]+) to ([\d.]+) \| (\d+) \|", MODEL, re.MULTILINE)


@pytest.mark.parametrize(("arguments", "low", "high", "copies"), ROWS, ids=[row[0] for row in ROWS])
def test_the_table_of_the_model_is_what_the_command_prints(arguments: str, low: str, high: str, copies: str) -> None:
    found = as_json(*arguments.split())
    assert [f"{edge:.3f}" for edge in found["window_s"]] == [low, high]
    assert found["copies"] == [int(copies)] * 2


def test_the_table_of_the_model_has_rows() -> None:
    assert len(ROWS) > 20
