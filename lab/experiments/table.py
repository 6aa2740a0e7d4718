"""Predicted and observed of many runs, as one Markdown table."""

from collections.abc import Iterator, Mapping

from lab.report.record import Branch, EndObservation, EndPrediction, Record

HEAD = """\
# Experiments, predicted and observed

Written by `pytest lab/ --lab-table docs/experiments.md`; `make table` does it. Times are seconds from the cut. The
prediction was made before the cut, from settings, socket options and measured RTT; it is shown counted from the first
lost send, or the last packet received, which only the run itself knows. Of a socket that its program closes in the dark
it is the orphan's end that is shown, and the copies after the close.

{machine}

| experiment | end | cause | predicted | observed | copies predicted | copies observed | outcome |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def as_table(records: Mapping[str, Record]) -> str:
    """One row for each end that had something to decide, in the order of the tests."""
    rows = [row for name, record in records.items() for row in _rows(name, record)]
    return HEAD.format(machine=_machine(records)) + "\n".join(rows) + "\n"


def _machine(records: Mapping[str, Record]) -> str:
    for record in records.values():
        return f"Linux {record.versions.kernel}, HZ {record.settings.hz}; {len(records)} runs."
    return "No run came to its end."


def _rows(name: str, record: Record) -> Iterator[str]:
    test = name.rpartition("/")[2].removeprefix("test_").replace(".py::test_", ": ").replace("|", "/")
    ends = (
        ("client", record.prediction.client, record.observation.client),
        ("server", record.prediction.server, record.observation.server),
    )
    telling = [
        end
        for end in ends
        if end[1].branch is not None and (end[1].branch.window_s or end[2].gave_up_s or end[1].orphan)
    ]
    for end, prediction, seen in telling or ends[:1]:
        yield f"| {test} | {end} | {' | '.join(_cells(prediction, seen, record))} | {record.outcome.value} |"


def _cells(prediction: EndPrediction, seen: EndObservation, record: Record) -> tuple[str, ...]:
    orphan = seen.orphan
    if prediction.orphan is not None and orphan is not None:
        gone = f"not within {record.horizon_s or 0:.1f}" if orphan.gone_s is None else f"{orphan.gone_s:.3f}"
        said = (prediction.orphan.cause.value, _window(prediction.orphan))
        return (*said, gone, _copies(prediction.orphan), str(orphan.copies))
    branch = prediction.branch
    cause = "" if branch is None else branch.cause.value
    return (cause, _window(branch), _observed(seen, record), _copies(branch), str(seen.copies))


def _window(branch: Branch | None) -> str:
    if branch is None or branch.window_s is None:
        return "never"
    return f"{branch.window_s[0]:.3f} to {branch.window_s[1]:.3f}"


def _observed(seen: EndObservation, record: Record) -> str:
    if seen.gave_up_s is not None:
        return f"{seen.gave_up_s:.3f}"
    if seen.recovered_s is not None:
        return f"delivered at {seen.recovered_s:.3f}, healed at {record.fault.healed_s or 0:.3f}"
    return f"not within {record.horizon_s or 0:.1f}"


def _copies(branch: Branch | None) -> str:
    if branch is None or branch.copies is None:
        return "any"
    low, high = branch.copies
    return str(low) if low == high else f"{low} to {high}"
