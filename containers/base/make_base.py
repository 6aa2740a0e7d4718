"""Makes the root file system of ``debian:bookworm-slim`` without any image registry, as a tar archive.

    python3 containers/base/make_base.py base.tar && docker import base.tar debian:bookworm-slim

``lab image build`` calls it where the image is neither present nor to be had. It needs root and debootstrap, takes
about half a minute, and installs from the mirror that this machine's own apt uses. Like the published image it lacks
manual pages, translations, package lists and caches; copyright files stay.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUITE = "bookworm"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

UNWANTED = (
    *(f"usr/share/{name}" for name in ("doc", "info", "lintian", "locale", "man")),
    *(f"var/{name}" for name in ("cache/apt", "cache/ldconfig", "lib/apt/lists", "log")),
    *("dev", "proc", "run", "sys", "tmp"),
)
"""Folders that are emptied; the files of ``KEPT`` in them stay."""

KEPT = ("copyright",)

SETTINGS = {
    "etc/dpkg/dpkg.cfg.d/slim": "".join(
        f"path-exclude /usr/share/{name}/*\n" for name in ("doc", "info", "lintian", "locale", "man")
    )
    + "path-include /usr/share/doc/*/copyright\n",
    "etc/apt/apt.conf.d/slim": (
        'Acquire::Languages "none";\n'
        'Acquire::GzipIndexes "true";\n'
        'APT::Install-Recommends "false";\n'
        'APT::AutoRemove::SuggestsImportant "false";\n'
        'Dir::Cache::pkgcache "";\n'
        'Dir::Cache::srcpkgcache "";\n'
        'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb || true"; };\n'
    ),
    # No service is ever started by an installation inside an image.
    "usr/sbin/policy-rc.d": "#!/bin/sh\nexit 101\n",
}
"""Files that keep what is installed later as slim as the rest."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place that apt installs from."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


def read_sources(apt: Path = Path("/etc/apt")) -> list[Source]:
    """What apt is configured to install from, in both of its formats."""
    found: list[Source] = []
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.suffix == ".list":
                found += parse_one_line(text)
            elif path.suffix == ".sources":
                found += parse_deb822(text)
    return found


def parse_one_line(text: str) -> Iterator[Source]:
    """``deb [option=value ...] URI SUITE COMPONENT ...``: sources.list(5)."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^]]*]\s+)?(\S+)\s+(\S+)([^#]*)", line)
        if match:
            yield Source(match[1], (match[2],), tuple(match[3].split()))


def parse_deb822(text: str) -> Iterator[Source]:
    """Stanzas of ``Types``, ``URIs``, ``Suites`` and ``Components``: sources.list(5)."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        # A line that begins with white space continues the one before it.
        unfolded = re.sub(r"\n[ \t]+", " ", stanza)
        fields = {
            key.strip().lower(): value.split()
            for key, colon, value in (line.partition(":") for line in unfolded.splitlines())
            if colon
        }
        if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"])[0].lower() not in {"no", "false", "0"}:
            for uri in fields.get("uris", []):
                yield Source(uri, tuple(fields.get("suites", [])), tuple(fields.get("components", [])))


def choose(sources: list[Source], suite: str, archive: str) -> str | None:
    """Where this machine gets a suite from, or at least the archive that the suite is in."""
    reached = [one for one in sources if "main" in one.components and re.match(r"https?://", one.uri)]
    exact = [one for one in reached if suite in one.suites]
    named = [one for one in reached if one.uri.rstrip("/").endswith(f"/{archive}")]
    return next((one.uri for one in exact + named), None)


def sources_list(sources: list[Source]) -> tuple[str, str] | None:
    """The main mirror, and the image's own sources.list; None where this machine's apt knows no Debian."""
    mirror = choose(sources, SUITE, "debian")
    if mirror is None:
        return None
    lines = [f"deb {mirror} {SUITE} main", f"deb {mirror} {SUITE}-updates main"]
    if security := choose(sources, f"{SUITE}-security", "debian-security"):
        lines.append(f"deb {security} {SUITE}-security main")
    return mirror, "\n".join(lines) + "\n"


def bootstrap(root: Path) -> None:
    """Install the smallest Debian into an empty folder."""
    known = sources_list(read_sources())
    # Without a mirror debootstrap takes its own, and leaves that in the image's sources.list.
    mirror = [] if known is None else [known[0]]
    keyring = [f"--keyring={KEYRING}"] if KEYRING.exists() else []
    # In a mount namespace: what debootstrap mounts below the folder is gone before anyone removes the folder.
    isolated = ["unshare", "--mount", "--propagation=private"]
    subprocess.run([*isolated, "debootstrap", "--variant=minbase", *keyring, SUITE, str(root), *mirror], check=True)
    if known is not None:
        (root / "etc/apt/sources.list").write_text(known[1], encoding="utf-8")


def slim(root: Path) -> None:
    """Remove what no container reads, and see that it does not come back."""
    for name, text in SETTINGS.items():
        path = root / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if name.startswith("usr/sbin") else 0o644)
    for folder in UNWANTED:
        empty(root / folder)
    for name in ("etc/hostname", "etc/resolv.conf", "etc/machine-id"):
        # This machine's own; the engine gives each container others.
        (root / name).unlink(missing_ok=True)


def empty(folder: Path) -> None:
    """Remove the files below a folder that need not stay; the folders do, for programs expect some of them."""
    for path in folder.rglob("*"):
        if path.name not in KEPT and (path.is_symlink() or not path.is_dir()):
            path.unlink()


def pack(root: Path, archive: Path) -> None:
    """The folder as a tar archive with numeric owners, in the order of names."""
    subprocess.run(
        ["tar", "--create", "--numeric-owner", "--sort=name", f"--file={archive}", f"--directory={root}", "."],
        check=True,
    )


def main() -> int:
    """Make the archive that the command line names."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: make_base.py ARCHIVE\n")
        return 2
    if shutil.which("debootstrap") is None:
        sys.stderr.write("debootstrap is missing: apt-get install debootstrap\n")
        return 5
    with tempfile.TemporaryDirectory(prefix="blackhole-lab-base-") as folder:
        root = Path(folder, "root")
        root.mkdir()
        try:
            bootstrap(root)
            slim(root)
            pack(root, Path(sys.argv[1]))
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"{error.cmd[0]} failed with {error.returncode}\n")
            return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
