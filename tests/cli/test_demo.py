"""``lab demo``: what it asks for; tests/cli/test_run.py runs it."""

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lab.cli import execute as executing
from lab.cli.demo import demo
from lab.run.spec import RunSpec

app = typer.Typer()
app.command()(demo)


@pytest.mark.parametrize("ipv6", [False, True])
def test_the_demo_is_a_fast_run_of_the_labs_own_programs(monkeypatch: pytest.MonkeyPatch, ipv6: bool) -> None:
    asked: list[tuple[RunSpec, dict[str, Any]]] = []
    monkeypatch.setattr(executing, "execute", lambda spec, **options: asked.append((spec, options)))
    result = CliRunner().invoke(app, ["--json", *(["--ipv6"] if ipv6 else [])])

    assert result.exit_code == 0, result.output
    ((spec, options),) = asked
    assert spec.server is not None
    assert (spec.profile.name, spec.ipv6, spec.server.own, spec.client.own) == ("fast", ipv6, True, True)
    assert {action.node for action in spec.actions} == {"client", "server"}, "both kernels have something to give up"
    assert spec.reconnect_at_s is not None
    assert options["as_json"] is True
    assert options["narrator"] is not None
