"""What the fuzzers call: everything that ``lab explain`` does with a file."""

import json
from pathlib import Path

from lab.core.errors import LabError
from lab.pcap import Capture
from lab.pcap.flows import read_flows
from lab.report.explanation import as_object


def explain_bytes(data: bytes, scratch: Path) -> bool:
    """Explain a file of these octets.

    Args:
        data: What the file holds.
        scratch: A file that may be overwritten.

    Returns:
        Whether it was a capture with TCP in it; False where the lab refused it with an error of its own.
    """
    scratch.write_bytes(data)
    try:
        found = read_flows(Capture(scratch))
    except LabError:
        return False
    json.dumps(as_object(found), allow_nan=False)
    return True
