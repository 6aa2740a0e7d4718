"""A testbed around containers of the user's own images."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy, LogMessageWaitStrategy

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.pcap import read_segments
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import ROLE
from lab.testcontainers import ListeningWaitStrategy, Testbed
from lab.testcontainers.joining import PodClient
from tests.testbed.docker.host import host_state
from tests.testbed.docker.owners import owner, until, wait_until_nothing_is_left
from tests.testbed.docker.sets import things_of
from tests.testcontainers.containers import PORT, QUICK, client, left, output, server

WRONG_TESTBEDS: list[tuple[dict[str, Any], str]] = [
    ({"network_mode": "host"}, "network_mode"),
    ({"hostname": "db"}, "hostname"),
    ({"extra_hosts": {"db": "192.0.2.1"}}, "extra_hosts"),
    ({"sysctls": {"net.ipv4.tcp_retries2": "5"}}, "sysctls={'server': {'net.ipv4.tcp_retries2': '5'}}"),
    ({"publish_all_ports": True}, "get_container_host_ip"),
]


@pytest.fixture(scope="module")
def clients(app: str) -> tuple[DockerContainer, DockerContainer]:
    """A client and a server that the engine gives what it gives by default."""
    return client(app), server(app).with_exposed_ports(PORT).with_network_aliases("api", "api.test")


@pytest.fixture(scope="module")
def testbed(clients: tuple[DockerContainer, DockerContainer]) -> Iterator[Testbed]:
    """One that several tests cut; each leaves it healed."""
    with Testbed(*clients) as testbed:
        yield testbed


def held(container: DockerContainer) -> dict[str, str]:
    """The capabilities of the container's main process."""
    status = container.exec(["python3", "-c", "print(open('/proc/1/status').read())"]).output.decode()
    return dict(line.split(":\t") for line in status.splitlines() if line.startswith(("Cap", "Uid", "NoNewPrivs")))


def test_a_cut_flow_dies_in_its_kernel_and_in_its_program_while_new_ones_pass(app: str) -> None:
    waiting = client(app, patience_s=0)
    with Testbed(waiting, server(app), sysctls={"client": QUICK}) as testbed:
        cut = testbed.cut(port=PORT)
        gone_s = testbed.wait_until_gone(cut)
        until(lambda: "lost TimeoutError" in output(waiting))
        testbed.flow(PORT)
        said = output(waiting)
        until(lambda: output(waiting) != said)
        verdict = cut.verdict()

        assert 0.5 < gone_s < 10
        assert "110" in said, "ETIMEDOUT, from the kernel"
        assert verdict.confirmed, verdict.reason
        assert verdict.forward.matched == cut.matched.forward == 1 + verdict.forward.copies
        assert verdict.return_.matched == 0, "the server had nothing to say"
        assert testbed.client.counters()["TcpExtTCPTimeouts"] >= 1
        with pytest.raises(TimeoutError, match="still has"):
            testbed.wait_until_gone(cut, "server", timeout_s=0.1)


def test_a_heal_delivers_what_was_sent_into_the_hole(app: str) -> None:
    waiting = client(app, patience_s=0)
    with Testbed(waiting, server(app)) as testbed:
        with testbed.cut(port=PORT) as cut:
            until(lambda: cut.matched.forward >= 3)
            dark = output(waiting)
            assert testbed.verdict().came_back is None
        until(lambda: output(waiting).count("answer") > dark.count("answer"))

        assert not cut.state.in_force
        assert cut.state.healed_by == "request"
        assert "lost" not in output(waiting)
        until(lambda: cut.verdict().came_back)
        assert cut.verdict().confirmed, cut.verdict().reason
        assert {one.flow for one in testbed.flows()} == {cut.flow}, "it is the same connection"


def test_a_program_with_a_timeout_of_its_own_comes_back_on_another_flow(
    testbed: Testbed, clients: tuple[DockerContainer, DockerContainer]
) -> None:
    cut = testbed.cut(port=PORT, direction="return")
    until(lambda: "lost TimeoutError" in output(clients[0]))
    other = testbed.flow(PORT, timeout_s=20)

    assert other != cut.flow
    assert testbed.verdict(cut).confirmed, testbed.verdict(cut).reason
    assert [fault.id for fault in testbed.heal()] == [cut.id]
    assert testbed.heal() == []


def test_a_second_cut_of_a_flow_is_the_same_fault_and_another_kind_is_refused(testbed: Testbed) -> None:
    with testbed.cut(testbed.flow()) as cut:
        assert testbed.cut(cut.flow).id == cut.id
        with pytest.raises(UsageError, match="cut by fault"):
            testbed.cut(cut.flow, direction="forward")


def test_a_fault_heals_by_itself_where_that_was_asked_for(testbed: Testbed) -> None:
    cut = testbed.cut(port=PORT, heal_after_s=0.3)
    until(lambda: cut.state.healed_by == "timer")


@pytest.mark.usefixtures("testbed")
def test_the_users_containers_hold_what_the_engine_gives_by_default_and_no_more(
    clients: tuple[DockerContainer, DockerContainer], app: str
) -> None:
    with DockerContainer(app) as alone:
        usual = held(alone)

    assert usual["CapEff"] == "0000000000000000", "its user is not root"
    assert int(usual["CapBnd"], 16) & 1 << 12 == 0, "NET_ADMIN is not among the engine's defaults: capability.h"
    assert [held(container) for container in clients] == [usual, usual]


def test_they_run_without_any_capability_too(app: str) -> None:
    bare: dict[str, Any] = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "read_only": True}
    with Testbed(client(app, **bare), server(app, **bare)) as testbed:
        cut = testbed.cut(port=PORT)
        testbed.flow(PORT)
        assert cut.verdict().confirmed

        for container in testbed._containers.values():
            assert {value for name, value in held(container).items() if name.startswith("Cap")} == {"0" * 16}


def test_the_host_reaches_a_container_at_its_own_address_and_port(
    testbed: Testbed, clients: tuple[DockerContainer, DockerContainer]
) -> None:
    where = f"http://{clients[1].get_container_host_ip()}:{clients[1].get_exposed_port(PORT)}/"

    assert clients[1].get_container_host_ip() == testbed.server.ipv4
    assert requests.get(where, timeout=5).text == "hello\n"
    assert clients[1].get_wrapped_container().attrs["HostConfig"]["PortBindings"] in (None, {})


def test_both_ends_know_each_other_by_name_and_by_the_aliases_given(
    testbed: Testbed, clients: tuple[DockerContainer, DockerContainer]
) -> None:
    for name in ("server", "api", "api.test"):
        code = f"import socket; print(socket.gethostbyname({name!r}))"
        assert clients[0].exec(["python3", "-c", code]).output.decode().strip() == testbed.server.ipv4


def test_another_process_drives_it_over_http(testbed: Testbed) -> None:
    url, token = testbed.serve()
    bearer = {"Authorization": f"Bearer {token}"}
    order: Any = {"select": {"server_port": PORT, "which": "newest"}}
    fault = requests.post(f"{url}/faults", json=order, headers=bearer, timeout=5).json()

    assert testbed.serve() == (url, token)
    assert url.startswith("http://127.0.0.1:")
    assert requests.get(f"{url}/flows", timeout=5).status_code == 401
    assert [one.id for one in testbed.heal()] == [fault["id"]]


def test_over_ipv6_with_the_captures_and_the_output_kept(app: str, tmp_path: Path) -> None:
    out = tmp_path / "kept" / "here"
    containers = client(app), server(app)
    with Testbed(*containers, ipv6=True, out=out) as testbed:
        cut = testbed.cut(port=PORT)
        until(lambda: cut.matched.forward >= 1)
        assert cut.flow.ipv6
        live = testbed.captures("left")

    seen = {side: [one for one in read_segments(out / f"{side}.pcapng") if one.source == cut.flow.client]
            for side in ("left", "right")}  # fmt: skip
    assert len(seen["left"]) > len(seen["right"]) > 0
    assert live.startswith(b"\x0a\x0d\x0d\x0a")
    assert "answer hello" in (out / "client.log").read_text()
    assert (out / "server.log").exists()


def test_a_servers_own_wait_strategies_work_as_anywhere(app: str) -> None:
    over_http = server(app).with_exposed_ports(PORT).waiting_for(HttpWaitStrategy(PORT).with_poll_interval(0.1))
    in_client = client(app).waiting_for(LogMessageWaitStrategy("answer hello").with_poll_interval(0.1))
    with Testbed(in_client, over_http) as testbed:
        assert "answer" in output(in_client)
        assert testbed.flow(PORT)


def test_a_listener_is_waited_for_until_the_kernel_has_it(app: str) -> None:
    late = DockerContainer(app).with_command(
        ["-c", "import runpy, sys, time; time.sleep(1); sys.argv[1:] = ['8080']; runpy.run_path('/app/server.py')"]
    )
    first = client(app)
    with Testbed(first, late) as testbed:
        testbed.flow(PORT)
        assert "lost" not in output(first), "the client was started when there was a listener"


@pytest.mark.slow
def test_containers_can_be_used_again_and_nothing_of_a_testbed_is_left(app: str, engine: Engine) -> None:
    before = left(engine)
    containers = client(app), server(app)
    for _ in range(2):
        with Testbed(*containers) as testbed:
            testbed.flow(PORT)
    with containers[1] as alone:
        assert alone.get_wrapped_container().attrs["HostConfig"]["NetworkMode"] in ("default", "bridge")

    assert left(engine) == before


def test_the_host_is_as_before_meanwhile_and_afterwards(app: str) -> None:
    before = host_state()
    with Testbed(client(app), server(app), sysctls={"client": QUICK}) as testbed, testbed.cut(port=PORT) as cut:
        until(lambda: cut.matched.forward)
        assert host_state() == before
    assert host_state() == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["-c", "raise SystemExit('no database')"], r"ended \(exit status 1\) before it listened.*no database"),
        (["-c", "pass"], r"ended \(exit status 0\) before it listened.*It printed nothing"),
    ],
)
def test_a_server_that_ends_at_once_is_named_with_its_last_words(
    app: str, engine: Engine, command: list[str], words: str
) -> None:
    before = left(engine)
    with pytest.raises(UsageError, match=words), Testbed(client(app), DockerContainer(app).with_command(command)):
        pytest.fail("it came up")

    assert left(engine) == before


def test_a_server_that_listens_elsewhere_is_told_from_one_that_does_not(app: str) -> None:
    wait = ListeningWaitStrategy(5000).with_startup_timeout(2)
    with pytest.raises(UsageError, match=r"after 2 s nothing in it listens on port 5000 .*; it listens on \[::\]:8080"):
        Testbed(client(app), server(app).waiting_for(wait)).start()


def test_a_wait_strategy_that_gives_up_is_a_usage_error_with_its_words(app: str) -> None:
    wait = LogMessageWaitStrategy("never").with_startup_timeout(1).with_poll_interval(0.1)
    with pytest.raises(UsageError, match=r"The server's container did not become ready: .*'never'"):
        Testbed(client(app), server(app).waiting_for(wait)).start()


def test_an_image_or_a_command_that_is_not_there_is_said_with_the_fix(app: str, engine: Engine) -> None:
    before = left(engine)
    with pytest.raises(EnvironmentNotReady, match=r"(?s)lab-test-nosuch.*Fix: docker pull|cannot be pulled"):
        Testbed(DockerContainer("lab-test-nosuch:1"), server(app)).start()
    with pytest.raises(UsageError, match="/nosuch"):
        Testbed(client(app, entrypoint=["/nosuch"]), server(app)).start()

    assert left(engine) == before


def test_a_client_that_ends_or_never_connects_is_said_with_its_last_words(app: str, testbed: Testbed) -> None:
    with Testbed(DockerContainer(app).with_command(["-c", "print('done')"]), server(app)) as short:
        with pytest.raises(UsageError, match=r"client's container ended \(exit status 0\).*to port 8080.*done"):
            short.flow(PORT)
        with pytest.raises(UsageError, match="Nothing was cut"):
            short.verdict()
    with pytest.raises(UsageError, match=r"no established flow to port 1 .*The client: .*answer hello"):
        testbed.flow(1, timeout_s=0.2)


def test_several_flows_are_told_apart_by_age_or_port(app: str) -> None:
    code = (
        "import socket, time\n"
        "kept = []\n"
        "for _ in range(2):\n"
        "    kept.append(socket.create_connection(('server', 8080)))\n"
        "    print(kept[-1].getsockname()[1], flush=True)\n"
        "    time.sleep(0.5)\n"
        "time.sleep(600)\n"
    )
    two = DockerContainer(app).with_command(["-c", code])
    with Testbed(two, server(app)) as testbed:
        until(lambda: len(output(two).split()) == 2)
        first, newest = map(int, output(two).split())

        with pytest.raises(UsageError, match=f"2 flows match to port 8080; .*{first}, {newest}"):
            testbed.cut(port=PORT)
        assert testbed.flow(PORT, "first").client.port == first
        assert testbed.flow(PORT, "newest").client.port == newest
        assert testbed.flow(which=newest).client.port == newest
        testbed.cut(which="first")
        assert testbed.flow(PORT).client.port == newest, "the other one is cut"


def test_a_container_that_the_test_removes_does_not_keep_the_rest(app: str, engine: Engine) -> None:
    before, first = left(engine), client(app)
    with Testbed(first, server(app)):
        first.stop()

    assert left(engine) == before


def test_a_killed_server_leaves_its_client_in_the_same_network(app: str) -> None:
    waiting, target = client(app, patience_s=0), server(app)
    with Testbed(waiting, target) as testbed:
        testbed.flow(PORT)
        target.get_wrapped_container().kill()
        until(lambda: "lost" in output(waiting))
        with pytest.raises(UsageError, match=r"server's container ended \(exit status 137\)"):
            testbed.flow(PORT, timeout_s=5)


@pytest.mark.parametrize(("options", "words"), WRONG_TESTBEDS)
def test_what_a_containers_network_has_is_refused_before_anything_is_made(
    app: str, engine: Engine, options: dict[str, Any], words: str
) -> None:
    before = left(engine)
    with pytest.raises(UsageError) as refused:
        Testbed(client(app), server(app, **options))

    assert words in str(refused.value)
    assert refused.value.fix
    assert left(engine) == before


def test_other_mistakes_are_refused_with_the_fix(app: str, testbed: Testbed) -> None:
    one = server(app)
    for wrong in (
        lambda: Testbed(one, one),
        lambda: Testbed(client(app), server(app).with_bind_ports(PORT, 18080)),
        lambda: Testbed(client(app).with_network_aliases("db"), server(app).with_network_aliases("db")),
        lambda: Testbed(client(app), server(app).with_network_aliases("client")),
        lambda: Testbed(client(app), server(app).with_network_aliases("a\n192.0.2.1 b")),
        lambda: Testbed(client(app), server(app)).flow(),
        lambda: Testbed(client(app), server(app), sysctls={"db": {}}).start(),
        lambda: Testbed(client(app), server(app), sysctls={"client": {"net.ipv4.nosuch": "1"}}).start(),
        lambda: testbed.start(),
        lambda: testbed.flow(PORT, "oldest"),
        lambda: testbed.cut(port=PORT, direction="up"),
        lambda: testbed.cut(FourTuple(Endpoint("192.0.2.1", 1), Endpoint("192.0.2.2", 2))),
        lambda: testbed.wait_until_gone(FourTuple(Endpoint("192.0.2.1", 1), Endpoint("192.0.2.2", 2))),
        lambda: testbed.captures("top"),
        lambda: ListeningWaitStrategy().wait_until_ready(one),
    ):
        with pytest.raises(LabError):
            wrong()
    with DockerContainer(app) as running, pytest.raises(UsageError, match="runs already"):
        Testbed(client(app), running)


def test_a_thread_of_the_test_may_cut_while_another_waits(testbed: Testbed) -> None:
    cuts: list[Any] = []
    threads = [threading.Thread(target=lambda: cuts.append(testbed.cut(port=PORT, which="newest"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    testbed.heal()

    assert 1 <= len({cut.id for cut in cuts}) <= 2
    assert len(cuts) == 2


def test_a_testbed_whose_router_died_says_so_and_is_removed(app: str, engine: Engine, tmp_path: Path) -> None:
    before = left(engine)
    with Testbed(client(app), server(app), out=tmp_path) as testbed:
        testbed.flow(PORT)
        holder = engine.client.containers.get(testbed._parts[0].holder("router"))
        holder.kill()
        began = time.monotonic()
        with pytest.raises(InvalidRun):
            testbed.cut(FourTuple(Endpoint("192.0.2.1", 1), Endpoint("192.0.2.2", 2)))
        assert time.monotonic() - began < 10

    assert left(engine) == before
    assert {path.name for path in tmp_path.iterdir()} >= {"left.pcapng", "right.pcapng", "client.log"}


def test_a_killed_owner_leaves_nothing_of_its_containers_either(app: str, engine: Engine) -> None:
    with owner("-m", "tests.testcontainers.containers", app) as victim:
        assert victim.hear() == "up"
        assert len([thing for thing in things_of(engine, victim.owner) if thing.labels[ROLE] == "program"]) == 2
        victim.kill()
        wait_until_nothing_is_left(engine, victim.owner)


def test_the_hosts_way_to_a_container_is_refused_where_there_is_none(testbed: Testbed, app: str) -> None:
    inner = server(app).get_docker_client()
    client = PodClient(inner, testbed.server, "0", {}, reachable=False)
    with pytest.raises(Unsupported, match=r"rootless.*ListeningWaitStrategy"):
        client.bridge_ip("0")
