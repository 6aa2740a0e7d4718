"""What the user hears of a loss."""

import pytest

from lab.live.recovery.playback import Gap, Playback

SECOND = 48_000
"""Octets of a second at 24 kHz."""


def test_without_a_loss_there_is_no_gap() -> None:
    player = Playback()
    player.audio(SECOND, now=100.0)

    assert player.gap is None


def test_an_idle_user_waits_from_the_loss_to_the_first_sound() -> None:
    player = Playback()
    player.lost(100.0)
    assert player.gap == Gap(100.0, 100.0, None)
    assert player.gap.heard_s is None
    assert player.gap.first_audio_s is None

    player.audio(SECOND, now=106.5)
    player.audio(SECOND, now=106.6)
    assert player.gap == Gap(100.0, 100.0, 106.5)
    assert player.gap.heard_s == pytest.approx(6.5)


def test_what_is_buffered_at_the_loss_hides_part_of_it() -> None:
    player = Playback()
    player.audio(2 * SECOND, now=99.0)
    player.audio(SECOND, now=99.1)
    player.lost(100.0)
    assert player.playing(now=101.9)
    assert not player.playing(now=102.0)

    player.audio(SECOND, now=106.5)
    assert player.gap is not None
    assert player.gap.heard_s == pytest.approx(4.5)
    assert player.gap.first_audio_s == pytest.approx(6.5)


def test_sound_that_comes_while_the_buffer_plays_leaves_no_gap() -> None:
    player = Playback()
    player.audio(5 * SECOND, now=99.0)
    player.lost(100.0)
    player.audio(SECOND, now=103.0)

    assert player.gap is not None
    assert player.gap.heard_s == 0.0
    assert player.gap.first_audio_s == pytest.approx(4.0)


def test_an_interruption_ends_what_is_played() -> None:
    player = Playback()
    player.audio(5 * SECOND, now=99.0)
    player.interrupted(now=99.5)
    player.lost(100.0)
    player.interrupted(now=100.5)

    assert player.gap == Gap(100.0, 100.0, None)


def test_no_octets_are_no_sound() -> None:
    player = Playback()
    player.lost(100.0)
    player.audio(0, now=101.0)

    assert player.gap == Gap(100.0, 100.0, None)


def test_a_second_loss_in_a_gap_prolongs_it_and_one_after_it_begins_another() -> None:
    player = Playback()
    player.lost(100.0)
    player.lost(103.0)
    player.audio(SECOND, now=109.0)
    assert player.gap == Gap(100.0, 100.0, 109.0)

    player.lost(120.0)
    assert player.gap == Gap(120.0, 120.0, None)


def test_another_rate_plays_another_length() -> None:
    player = Playback(rate=16_000)
    player.audio(32_000, now=100.0)

    assert player.playing(now=100.99)
    assert not player.playing(now=101.0)
