from dataclasses import replace
from pathlib import Path

from lab.control.recording import Recording
from tests.control.fakes import FakeRouter


def test_what_was_lost_before_an_instant_is_what_the_last_reading_before_it_says(tmp_path: Path) -> None:
    router = FakeRouter()
    recording = Recording(router, tmp_path, 1, lambda *_: None)
    router.start_capture(tmp_path, limit_bytes=1)
    for at, lost in ((10.0, 0), (20.0, 3), (30.0, 5)):
        recording.note(
            replace(router.flush_capture(), stopped_at=at, dropped={"left": lost, "right": 1 if lost else 0})
        )

    assert [recording.lost_up_to(at) for at in (5.0, 15.0, 20.0, 29.9, 31.0)] == [0, 0, 4, 4, 6]
