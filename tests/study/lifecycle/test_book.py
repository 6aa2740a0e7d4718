from lab.study.lifecycle.book import Book


def connected(book: Book, connection: int, port: int) -> None:
    book.tell("connected", t=1.0, connection=connection, remote=["127.0.0.1", port], version="v1beta")


def detached(book: Book, connection: int, how: str = "close frame") -> None:
    book.tell("detach", t=2.0, connection=connection, how=how)


def test_a_connection_lives_from_its_upgrade_to_its_end() -> None:
    book = Book()
    connected(book, 1, 4000)
    (life,) = book.lives
    assert (life.ended_s, life.how, set(book.open_ports())) == (None, "", {4000})

    detached(book, 1)

    assert (life.ended_s, life.how, set(book.open_ports())) == (2.0, "close frame", set())
    assert life.ended_at is not None
    assert life.ended_at >= life.began_at


def test_a_port_that_is_used_again_is_another_connection() -> None:
    """Else the end of the first would pass for the second's."""
    book = Book()
    connected(book, 1, 4000)
    detached(book, 1)
    first = book.lives[0]
    assert book.find(4000, first.began_at) is first

    since = first.began_at + 1e-9
    assert book.find(4000, since) is None
    connected(book, 2, 4000)

    second = book.find(4000, since)
    assert second is book.lives[1]
    assert second.ended_at is None


def test_the_setup_that_was_accepted_is_noted() -> None:
    book = Book()
    connected(book, 1, 4000)
    assert not book.lives[0].asked

    book.tell("attach", t=1.5, connection=1)

    assert book.lives[0].asked


def test_what_is_nobodys_connection_is_left_alone() -> None:
    book = Book()
    book.tell("connected", t=1.0, connection=1, remote=None, version=None)
    detached(book, 1)
    book.tell("late", t=1.0, by_s=0.1)

    assert book.lives == []
