"""Puts a selection of docs/experiments.md into the README, between its two marks; ``make table`` runs it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MARKS = ("<!-- experiments -->", "<!-- /experiments -->")

SELECTION = (
    ("busy: both_kernels_and_both_programs_give_up[ipv4]", "client", "busy both ways"),
    ("one_way: request_lost_and_server_never_told[ipv4]", "client", "only the way to the server is dark"),
    (
        "one_way: request_arrived_and_client_is_never_told[ipv4]",
        "client",
        "only the way back: the server has the request",
    ),
    ("idle: nobody_ever_notices[ipv4]", "client", "idle, no keepalive"),
    ("idle: keepalive_ends_it_by_count[idle4-interval2-count3]", "client", "idle, keepalive 4/2/3"),
    ("idle: user_timeout_overrides_the_count[longer]", "client", "idle, keepalive 2/1/2, user timeout 6.5 s"),
    ("user_timeout: user_timeout_decides_instead_of_retries2[shorter-ipv4]", "client", "busy, user timeout 2.5 s"),
    ("retries2: death_at_the_first_expiry_past_the_bound[real-time-5]", "client", "tcp_retries2=5, nothing compressed"),
    ("retries2: death_at_the_first_expiry_past_the_bound[real-time-6]", "client", "tcp_retries2=6, nothing compressed"),
    ("heal: delivered_at_the_next_copy[after-5s-ipv4]", "client", "healed after 5 s"),
    ("handshake: syn_unanswered[retries2-linear4]", "client", "SYN lost, 2 + 4 retries"),
    ("handshake: synack_unanswered[retries2]", "server", "SYN/ACK lost, 2 retries"),
    ("orphans: fin_wait_1_with_data[orphan-retries-0]", "client", "closed with data in flight"),
    ("orphans: last_ack[orphan-retries-0]", "server", "LAST_ACK"),
    ("orphans: fin_wait_2[fin-timeout-3]", "client", "FIN_WAIT2, tcp_fin_timeout=3"),
    ("zero_window: in_the_dark_the_probes_are_counted[probes-4]", "client", "zero window, then dark, 4 probes"),
)
"""Row of docs/experiments.md, its end, and what the README calls it."""

HEAD = "| what | ends by | predicted (s) | observed (s) | copies |\n| --- | --- | --- | --- | --- |\n"


def rows(experiments: str) -> dict[tuple[str, str], list[str]]:
    """Cells by experiment and end."""
    found = {}
    for line in experiments.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8:
            found[cells[0], cells[1]] = cells[2:]
    return found


def selection(experiments: str) -> str:
    """The README's table."""
    known = rows(experiments)
    lines = []
    for name, end, title in SELECTION:
        cause, predicted, observed, _, copies, outcome = known[name, end]
        if outcome != "confirmed":
            raise SystemExit(f"{name} is {outcome}: run the experiments again before showing them")
        if observed.startswith("delivered"):
            cause, predicted = "nothing: delivered at the next copy", "the next copy"
        lines.append(f"| {title} | {cause} | {predicted} | {observed} | {copies} |")
    return HEAD + "\n".join(lines) + "\n"


def with_table(readme: str, table: str) -> str:
    """The README with the table between its marks."""
    begin, end = MARKS
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{table}\n{end}", readme, flags=re.DOTALL)


def main() -> None:
    """Rewrite the README."""
    readme = ROOT / "README.md"
    table = selection((ROOT / "docs/experiments.md").read_text(encoding="utf-8"))
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
