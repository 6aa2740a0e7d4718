"""What of a prediction is left to judge where the path was cut in one direction only."""

from lab.core.flow import Direction
from lab.run.predictions import predictions
from tests.run.cases import gave_up, made_findings, made_passage, made_server


def test_a_reset_by_the_way_that_was_left_open_refutes_nothing() -> None:
    """Cut towards the client only: a client that dies by keepalive tells the server with a RST."""
    server = made_server(fate=gave_up(103.0, cause="reset"))
    one_way = made_findings(server=server, passages=(made_passage(Direction.RETURN, 1),))
    both_ways = made_findings(server=server)
    assert [c.ok for c in predictions(one_way) if c.name == "server-alive"] == [True]
    assert [c.ok for c in predictions(both_ways) if c.name == "server-alive"] == [False]
