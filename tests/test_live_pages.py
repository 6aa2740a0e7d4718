"""What README.md, docs/live.md and docs/study.md say of live sessions is what the code has and the commands print."""

import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

import lab.live.recovery
from lab.cli.live_run import _summary
from lab.cli.output import PLAIN_WIDTH
from lab.live.client.script import KINDS, parse_script
from lab.live.model.manner import Manner
from lab.live.model.speech import END_SILENCE_S
from lab.live.protocol import paths
from lab.live.recovery.policy import Policy
from lab.live.session.profile import DEFAULT, PROFILES
from lab.live.session.states import State
from lab.live.session.status import SessionStatus
from lab.study.findings import HEAD, Machine, findings
from lab.study.judgement import judge_row
from lab.study.narrative import CLIENT, SERVER
from lab.study.new_ground import NEW_GROUND
from lab.study.scenario import Group, Range
from lab.study.scenarios import PUBLISHED, SCENARIOS, find, sessions
from lab.study.table import WORDS
from tests.study.streams import br1

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LIVE = (ROOT / "docs/live.md").read_text(encoding="utf-8")
STUDY = (ROOT / "docs/study.md").read_text(encoding="utf-8")
PAGE = ROOT / "docs/findings.md"
"""Written by ``make study``."""

VERDICTS = ("in range", "outside, as explained", "as predicted", "NOT AS PREDICTED", "OUTSIDE", "INVALID")


def block(page: str, words: str) -> str:
    """The block of a page with these words in it."""
    found: str
    (found,) = [text for text in re.findall(r"```\w+\n(.*?)```", page, re.DOTALL) if words in text]
    return found


def cells(page: str, heading: str) -> list[list[str]]:
    """Rows of the table under a heading's first cell."""
    lines = iter(page.splitlines())
    next(line for line in lines if line.startswith(f"| {heading} |"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def named(text: str) -> set[str]:
    """What stands between backticks."""
    return set(re.findall(r"`([^`]+)`", text))


def without_figures(text: str) -> list[str]:
    return re.sub(r"[+-]?\d+(\.\d+)?", "N", text).split()


def unwrapped(shown: str) -> list[str]:
    """Lines of a verdict as they were before they were made to fit."""
    lines: list[str] = []
    for line in shown.splitlines():
        if line.startswith(" ") and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines


# The server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, object]]:
    """What ``lab live serve`` prints, and its status."""
    ports = ("--port", "0", "--tls-port", "0", "--status-port", "0")
    command = [sys.executable, "-m", "lab", "live", "serve", *ports]
    folder = str(tmp_path_factory.mktemp("state"))
    environment = os.environ | {"XDG_STATE_HOME": folder, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        printed = [running.stdout.readline().rstrip() for _ in range(6)]
        url = printed[-1].rpartition(" ")[2]
        with urllib.request.urlopen(url, timeout=20) as answer:
            status = json.load(answer)
        running.send_signal(signal.SIGINT)
    return printed, status


def test_the_invitation_shown_is_what_the_command_prints(served: tuple[list[str], dict[str, object]]) -> None:
    def alike(lines: Sequence[str]) -> list[str]:
        return [re.sub(r"=/.*/blackhole-lab/", "=", re.sub(r":\d+", ":N", line)) for line in lines]

    shown = block(README, "$ lab live serve").splitlines()[1:]
    assert alike(shown) == alike(served[0])


def test_every_key_of_the_status_is_explained(served: tuple[list[str], dict[str, object]]) -> None:
    section = LIVE.split("### The status port")[1].split("\n### ")[0]
    keys = {*served[1], *(each.name for each in dataclasses.fields(SessionStatus))}

    assert keys - named(section) == set()


def test_the_command_that_cuts_a_client_is_the_same_on_both_pages() -> None:
    """``make conformance`` runs the README's."""
    shown = [
        re.findall(r"^    lab run (--profile study-server .*?)\n\n", page, re.DOTALL | re.MULTILINE)
        for page in (README, LIVE)
    ]

    assert shown[0] == shown[1]
    assert len(shown[0]) == 1


def test_the_profiles_are_those_that_there_are() -> None:
    assert [named(row[0]).pop() for row in cells(LIVE, "profile")] == list(PROFILES)


def test_the_states_are_those_that_there_are() -> None:
    assert [row[0] for row in cells(LIVE, "state")] == [state.value for state in State]


def test_each_path_is_one_that_the_server_knows() -> None:
    (first, token, *others) = [row[0] for row in cells(LIVE, "path after `/ws/`")]
    whole = named(first).pop()
    written = [whole, whole.replace("BidiGenerateContent", named(token).pop()), *(named(each).pop() for each in others)]
    found = [paths.find("/ws/" + each.replace("VERSION", "v1beta").replace("PLACE", "us-central1")) for each in written]

    assert None not in found
    assert {each.kind for each in found if each} == set(paths.EndpointKind)


def test_the_readings_have_the_figures_that_they_have_in_the_code() -> None:
    manner = Manner()
    readings = {row[0]: row[1] for row in cells(LIVE, "reading")}
    figures = " ".join(readings.values())

    assert readings["how long an idle session settles (`settle_s`)"] == f"{DEFAULT.settle_s} s"
    assert f"{DEFAULT.words_per_s} words/s, {DEFAULT.burst:g} times real time" in figures
    assert f"2 of 3, after {manner.redo_s[0]} to {manner.redo_s[1]} s" in figures
    assert round(manner.redo_share, 3) == 0.667
    assert f"{DEFAULT.handle_valid_s:.0f} s" in figures
    assert readings["audio in a message of the model's"] == f"{manner.chunk_s} s"
    assert readings["silence that ends an utterance"] == f"{END_SILENCE_S} s"


# The commands


@pytest.mark.parametrize(
    ("verb", "page"),
    [("serve", LIVE), ("assistant", LIVE), ("run", STUDY), ("study", STUDY)],
    ids=lambda each: each[:9],
)
def test_every_option_is_named(verb: str, page: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab", "live", verb, "--help"],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    options = set(re.findall(r"^\s+(--?[a-z][a-z-]*)", done.stdout, re.MULTILINE)) - {"-h"}

    assert len(options) > 5
    assert {option for option in options if not re.search(rf"`[^`]*{option}\b", page)} == set()


def test_every_step_is_named_with_its_fields() -> None:
    rows = [(named(row[0]), row[1]) for row in cells(LIVE, "step")]
    missing = [
        f"{name}: {each.name}"
        for name, kind in KINDS.items()
        for each in dataclasses.fields(kind)
        for does in [" ".join(text for names, text in rows if name in names)]
        if each.name.removesuffix("_s") not in named(does)
    ]

    assert set(KINDS) == set().union(*(names for names, _ in rows))
    assert missing == []


def test_the_script_shown_can_be_read_and_what_it_printed_is_what_the_assistant_tells() -> None:
    (script,) = re.findall(r"lab live assistant --script '(.*?)'\n", LIVE, re.DOTALL)
    told = [line[10:] for line in _joined(block(LIVE, "ends its connection: abort"), 10)]

    assert len(parse_script(script).steps) == 6
    assert [line for line in told if not _is_told(line, CLIENT.values())] == []


def test_the_policy_s_options_are_named_with_their_defaults() -> None:
    shown: dict[str, str] = {}
    for names, default, _ in cells(LIVE, "option | default"):
        keys, values = sorted(named(names), key=names.index), default.split(", ")
        shown |= dict(zip(keys, values * len(keys) if len(values) == 1 else values, strict=False))

    assert shown == {each.name: json.dumps(each.default) for each in dataclasses.fields(Policy)}


def test_the_loop_shown_is_the_package_s_own() -> None:
    """But for its layout, which the formatter mends on a page."""
    assert lab.live.recovery.__doc__ is not None
    assert "".join(block(LIVE, "def obey").split()) in "".join(lab.live.recovery.__doc__.split())


# The study


@functools.cache
def _forms(words: tuple[str, ...]) -> re.Pattern[str]:
    """Of the words that events are told in; what lacks at their end is not told."""
    return re.compile(
        "|".join(".*".join(map(re.escape, re.split(r"\{[^}]*\}", form.split(": {code}")[0]))) for form in words)
    )


def _is_told(line: str, words: Iterable[str]) -> bool:
    return _forms(tuple(words)).match(line) is not None


def _joined(shown: str, indent: int) -> list[str]:
    lines: list[str] = []
    for line in shown.splitlines():
        if line.startswith(" " * indent) and not line[indent:].startswith(" ") and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines


def test_the_story_shown_is_told_in_the_words_that_there_are() -> None:
    story = block(STUDY, "session 1: session time").split("\n\n")[0]
    told = [line[29:] for line in _joined(story, 29)[1:]]

    assert len(told) > 20
    assert "--- cut: nobody is told ---" in told
    assert [line for line in told if not _is_told(line, (*CLIENT.values(), *SERVER.values(), "--- cut"))] == []


@pytest.mark.parametrize(("page", "words"), [(README, "$ lab live run BR1"), (STUDY, "session 1: session time")])
def test_the_verdict_shown_is_written_as_the_command_writes_it(page: str, words: str) -> None:
    scenario = find("BR1")
    shown = unwrapped(block(page, words).split("AS EXPLAINED:")[1])
    row = judge_row(scenario, [br1().session("BR1", k) for k in range(4)], real=False)
    written = [" ".join(line.split()) for line in _summary(row)]

    assert shown[0].strip() == f"BR1, {scenario.title}"
    assert " ".join(shown[3].split()) == written[3], "what the study saw"
    words_of = {word for word in WORDS.values() if f"{word} " in shown[2]}
    assert words_of == {word for word in WORDS.values() if f"{word} " in written[2]}
    why = [f"({each.source}): {each.why}" for each in scenario.expects if isinstance(each, Range)]
    assert all(line.endswith(tuple(why)) for line in shown[4:-1])
    assert shown[-1].startswith("Everything is in runs/")
    assert all(len(line) <= PLAIN_WIDTH for line in block(page, words).splitlines())


def test_the_figures_said_of_the_scenarios_are_theirs() -> None:
    by_default = sum(each.brief or each.n for each in SCENARIOS.values())

    assert f"one of {len(SCENARIOS)} scenarios" in README
    assert f"the study's {sessions(PUBLISHED)} sessions" in README
    assert f"those and the new scenarios: {by_default} sessions" in STUDY


def test_the_new_ground_and_its_predictions_are_the_code_s() -> None:
    assert cells(STUDY, "id | what") == [[each.id, each.title, each.prediction] for each in NEW_GROUND]


def faults(page: str) -> list[str]:
    """What is not as ``lab live study`` writes it, with the scenarios as they are now."""
    rows = {}
    for line in page.splitlines():
        found = [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("| ") and found[-1].startswith(VERDICTS):
            rows[found[0]] = found
    wrong = [] if page.startswith(HEAD) else ["the head"]
    wrong += [f"no {group.value}" for group in Group if f"\n## {group.value.capitalize()}\n" not in page]
    for scenario in SCENARIOS.values():
        row = rows.get(scenario.id)
        if row is None or [row[2], row[4]] != [
            scenario.title,
            " ".join((scenario.study or scenario.prediction).split()),
        ]:
            wrong.append(f"the row of {scenario.id}")
    return wrong


def test_the_page_of_findings_is_the_command_s() -> None:
    rows = [judge_row(each, [], real=False) for each in SCENARIOS.values()]
    written = findings(rows, Machine("6.18", 2, 60.0, "netns"))

    assert faults(written) == []
    assert (
        faults(written.replace(find("BR1").title, "something else")) == ["the row of BR1", "the row of BR1-no-note"][:1]
    )
    assert faults(written.replace("## New ground", "## Newer ground")) == ["no new ground"]


@pytest.mark.skipif(not PAGE.exists(), reason="docs/findings.md is not there; make study writes it")
def test_the_page_of_findings_that_is_kept_is_of_that_form_and_whole() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert faults(page) == []
    assert [link for link in re.findall(r"\]\(([^)]+)\)", page) if not (PAGE.parent / link).exists()] == []


@pytest.mark.parametrize("name", ["live.md", "study.md", "design.md", "google-genai.md"])
def test_every_link_of_the_pages_leads_somewhere(name: str) -> None:
    page = ROOT / "docs" / name
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    missing = [link for link, _ in links if link and not (page.parent / link).exists()]
    anchors = [f"{link}#{anchor}" for link, anchor in links if anchor and anchor not in _anchors(page, link)]

    assert missing == []
    assert anchors == []


def _anchors(page: Path, link: str) -> set[str]:
    text = (page.parent / link if link else page).read_text(encoding="utf-8")
    return {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }
