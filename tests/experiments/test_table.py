"""The page of experiments: a row for each end that had something to decide."""

from lab.experiments.table import as_table
from lab.report.record import Record
from tests.report.cases import CASES
from tests.report.test_summary import with_an_orphan


def rows(**records: Record) -> list[list[str]]:
    """The cells of each row, of tests of these names."""
    page = as_table({f"lab/experiments/test_{name}.py::test_it[a|b]": record for name, record in records.items()})
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")][2:]


def case(name: str) -> Record:
    return CASES[name]()[0]


def test_each_end_that_was_to_give_up_has_a_row_with_prediction_and_observation() -> None:
    assert rows(busy=case("both-ways")) == [
        ["busy: it[a/b]", "client", "retries2", "14.641 to 15.271", "14.954", "16", "16", "confirmed"],
        ["busy: it[a/b]", "server", "retries2", "14.894 to 15.524", "15.207", "16", "16", "confirmed"],
    ]


def test_a_run_in_which_nobody_was_to_give_up_has_one_row() -> None:
    (row,) = rows(idle=case("idle-for-ever"))

    assert row[1:5] == ["client", "none", "never", "not within 30.0"]


def test_of_a_socket_that_its_program_closed_the_orphans_end_is_shown_with_its_own_copies() -> None:
    client, server = rows(orphan=with_an_orphan())

    assert client[1:7] == ["client", "orphan-retries", "7.000 to 7.500", "7.200", "1 to 2", "2"]
    assert server[1:3] == ["server", "retries2"]


def test_an_orphan_of_which_nothing_was_predicted_is_not_held_to_anything() -> None:
    client, _ = rows(orphan=with_an_orphan(predicted=None))

    assert client[1:3] == ["client", "retries2"]


def test_the_head_says_on_what_it_ran_and_how_often() -> None:
    assert "Linux 6.18.0, HZ 250; 1 runs." in as_table({"x": case("both-ways")})
    assert "No run came to its end." in as_table({})
