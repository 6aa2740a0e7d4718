#!/usr/bin/env bash
# Makes the clips in lab/live/voice/clips anew, with espeak-ng and sox; they are committed, so only a change of wording
# needs this. The lab itself needs neither program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for program in espeak-ng sox; do
  command -v "$program" >/dev/null || {
    echo "clips: $program is missing: apt-get install espeak-ng sox" >&2
    exit 5
  }
done

readonly out=lab/live/voice/clips
readonly voice=en-us
# Words per minute: the first sentence then takes the 2.3 s that the study's took.
readonly pace=185

# Silence at both ends goes, and 0.1 s of it comes back, so that a clip's length is that of its speech; -D: no dither,
# which would give other octets every time.
say() {
  espeak-ng -v "$voice" -s "$pace" --stdout "$2" |
    sox -D -t wav - -r 16000 -b 16 -c 1 "$out/$1.wav" \
      silence 1 0.02 0.5% reverse silence 1 0.02 0.5% reverse norm -6 pad 0.1 0.1
}

mkdir -p "$out"
rm -f "$out"/*.wav
while IFS='|' read -r name words; do
  say "$name" "$words"
done <"$out/clips.txt"
