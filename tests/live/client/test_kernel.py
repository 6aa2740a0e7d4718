import socket

from lab.live.client.kernel import Acknowledgements, Sample, look


def test_since_is_the_last_look_at_which_all_was_acknowledged() -> None:
    evidence = Acknowledgements()

    assert evidence.since(Sample(0, 100), 1.0) is None
    assert evidence.since(Sample(1, 100), 1.5) == 1.0
    assert evidence.since(Sample(2, 100), 2.0) == 1.0


def test_progress_makes_what_is_left_younger() -> None:
    evidence = Acknowledgements()
    evidence.since(Sample(3, 100), 1.0)

    assert evidence.since(Sample(3, 150), 2.0) == 2.0


def test_an_acknowledgment_of_all_ends_it() -> None:
    evidence = Acknowledgements()
    evidence.since(Sample(1, 100), 1.0)

    assert evidence.since(Sample(0, 150), 2.0) is None


def test_no_look_is_no_evidence() -> None:
    assert Acknowledgements().since(None, 1.0) is None


def test_the_kernel_counts_what_the_peer_has_acknowledged() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as opened:
        accepted, _ = listener.accept()
        before = look(opened)
        opened.sendall(b"12345")
        assert accepted.recv(5) == b"12345"
        after = look(opened)
        accepted.close()

    assert before is not None
    assert after is not None
    assert after.bytes_acknowledged - before.bytes_acknowledged in (0, 5)  # The acknowledgment may be under way.


def test_a_closed_socket_cannot_be_looked_at() -> None:
    opened = socket.socket()
    opened.close()

    assert look(opened) is None
