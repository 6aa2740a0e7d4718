"""The reference client of live sessions: an assistant that survives the loss of its connection.

``python -m lab.live.client --url ws://server:8765 --script '[...]'`` runs it. It prints one JSON object per line:
``at`` (CLOCK_MONOTONIC seconds), ``t`` (session time, seconds), ``event`` and what belongs to it. It needs the standard
library and websockets alone; google-genai for ``--adapter google-genai``.

================ ==============================================================================================
event            with
================ ==============================================================================================
connecting       ``attempt`` (1, 2, ...), ``handle`` that it asks for
connected        ``attempt``, ``local``, ``remote`` as [address, port]: TCP, and TLS where there is some, stand
setup_complete   ``attempt``, ``took_s`` since it began
refused          ``attempt``, ``code`` (close code, or HTTP status), ``reason``, ``took_s``, ``phase``
failed           ``attempt``, ``error``, ``took_s``, ``phase``: connect, upgrade, setup
handle           ``handle``, ``resumable``, ``attempt``
said             ``clip``, ``text``: at the end of its last word
heard            ``text`` that the server made of it
tool_call        ``id``, ``name``, ``args``, ``attempt``
reissued         ``id``, ``duplicate_of``: the same thing was asked for under another id; not run again
asked_again      ``id``: the same call came twice; not run again
cancelled        ``ids``
committed        ``key``, ``confirmation_id``
not_committed    ``key``, ``error``
result_sent      ``id``, ``attempt``: it is on its way to the kernel
audio_first      ``attempt``: the first sound of a turn
model_said       ``text`` of a complete turn
turn_complete    ``attempt``
interrupted      ``text`` so far
go_away          ``attempt``, ``time_left_s``
mark             ``name``: whoever runs the assistant acts on it
drop             ``how``, ``attempt``
lost             ``attempt``, ``silent_s``, ``by``: silence, unacknowledged, closed, ended
path_back        ``attempt``: something came on a connection that was lost
close_old        ``attempt``, ``code``: a close is queued on a connection that was lost
closed           ``attempt``, ``code``, ``reason``, ``by`` (server, us, network), ``error``
resumed          ``attempt``, ``since_lost_s`` (noticed or dropped), ``since_heard_s`` (last sign of life)
not_resumed      every attempt of a ``resume`` step came to nothing
fallback         as ``resumed``, on a new session
restored         ``attempt``, ``note``, ``jobs`` in it
update_note      ``jobs`` whose end it told
given_up         ``reason``
gap              ``heard_gap_s`` that the user heard nothing, ``first_audio_s`` since the loss
replayed         ``seconds`` of speech and ``texts`` that no connection had carried: said again after a gap
cut_off          ``text`` of a turn that the loss cut off
speech_lost      ``seconds`` that were spoken without a connection
not_sent         ``text`` that was typed without a connection
answer           ``asked``, ``text``, ``says``, ``truth``, ``consistent``, ``commit_age_s``, ``began_s`` after the
                 question
lapse            ``since``, ``factor``, ``server``: whether it was told
lapsed           ``factor``, ``looks``, ``late_p50_s``, ``late_most_s``: how punctual it was then, by the wall
told             ``word`` on standard input
stuck            ``step`` (from 1; 0 is the first connection), ``do``, ``why``: the script could not go on
defect           ``error``: something failed that nobody foresaw; the traceback is on standard error
bookings         ``count``, ``rows``: the ground truth
ledger           ``jobs``, ``due``: ids of results that were not sent
watchdog         ``looks``, ``late_p99_s``, ``late_most_s``: how punctual it was
done             ``ok``; then it waits for ``quit``, or the end of standard input, with its sockets as they are
================ ==============================================================================================

Reports of the recovery policy come as ``abandoned``, ``late``, ``handle_dead``, ``old_closed`` and ``falling_back``.
"""
